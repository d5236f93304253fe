/** Sends one request and returns the complete reply, or an error that says how far it got. Knows HTTP only. */
import got, { RequestError } from 'got'
import { createConnections } from './connections.ts'
import { claimedRequest } from './claimed-request.ts'
import type { Departure } from './rate-limit.ts'
import { LostReply, Unreachable, UnexpectedReply } from './errors.ts'

interface TransportSettings {
  baseUrl: string
  headers: Readonly<Record<string, string>>
  concurrency: number
  timeoutSeconds: number
  maxResponseBytes: number
}

export interface Request {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Relative to the base address. */
  path: string
  query?: Readonly<Record<string, string>>
  /** JSON text. */
  body?: string
  token: string
  /** Use a new connection. */
  freshConnection?: boolean
  /**
   * Called once a connection stands, just before the request leaves on it. Where it throws, or takes more than
   * `sendWithinMs`, the request never leaves.
   */
  beforeSend?: (() => void | Promise<void>) | undefined
  signal?: AbortSignal | undefined
}

export interface Reply {
  status: number
  /**
   * The body. Its text is decoded where it is parsed: a connection that is kept alive refers to its last reply, so a text
   * would outlive many pages, and V8 would move it among the old objects.
   */
  bytes: Uint8Array
  headers: Readonly<Record<string, string | string[] | undefined>>
}

export type Transport = (request: Request & { departure: Departure }) => Promise<Reply>

/**
 * Sends over kept-alive connections without following redirects or retrying, with a deadline and a size limit.
 * @throws {Unreachable}
 * @throws {LostReply}
 * @throws {UnexpectedReply}
 * @throws the signal's reason if it is aborted
 */
export function createTransport(settings: TransportSettings): Transport {
  const { concurrency: maxConnections, maxResponseBytes } = settings
  const base = settings.baseUrl.replace(/\/+$/, '')
  const kept = createConnections({ url: base, maxConnections, keepAlive: true })
  const fresh = createConnections({ url: base, maxConnections, keepAlive: false })
  const http = createHttp(settings)
  return async (request) => {
    const {
      method,
      path,
      query,
      body,
      token,
      signal,
      freshConnection,
      departure,
      beforeSend: claim,
    } = request
    const tooLarge = new AbortController()
    const stop = signal === undefined ? tooLarge.signal : AbortSignal.any([signal, tooLarge.signal])
    const claimed = claimedRequest({ method, path, claim, departure })
    const search = query === undefined ? '' : `?${new URLSearchParams(query).toString()}`
    const sending = http(`${base}${path}${search}`, {
      method,
      agent: freshConnection === true ? fresh : kept,
      signal: stop,
      headers: {
        authorization: `Token ${token}`,
        // Caches must revalidate: an old response says nothing about the list now.
        ...(method === 'GET' && { 'cache-control': 'no-cache' }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body }),
      request: claimed.open,
    })
    void sending.on('downloadProgress', ({ transferred }) => {
      if (transferred > maxResponseBytes) tooLarge.abort()
    })
    try {
      const { statusCode, body: bytes, headers } = await sending
      return { status: statusCode, bytes, headers }
    } catch (error) {
      await claimed.giveUp()
      if (claimed.refusal !== undefined) throw claimed.refusal
      signal?.throwIfAborted()
      if (tooLarge.signal.aborted)
        throw new UnexpectedReply({
          method,
          path,
          problem: 'tooLarge',
          why: `more than ${maxResponseBytes} bytes`,
        })
      if (!(error instanceof RequestError)) throw error
      throw toLoss({ method, path, error, couldHaveLeft: claimed.left })
    }
  }
}

function createHttp({ headers, timeoutSeconds }: TransportSettings) {
  return got.extend({
    headers: { 'user-agent': 'billing-connector', accept: 'application/json', ...headers },
    retry: { limit: 0 },
    followRedirect: false,
    throwHttpErrors: false,
    responseType: 'buffer',
    timeout: { request: timeoutSeconds * 1000 },
  })
}

/** got's own error contains the request with its headers, so only its cause is passed on. */
function toLoss(loss: { method: string; path: string; error: RequestError; couldHaveLeft: boolean }) {
  const { method, path, error, couldHaveLeft } = loss
  const cause = error.cause ?? new Error(`${error.code}: ${error.message}`)
  const why = `${error.code}: ${error.message}`
  return couldHaveLeft
    ? new LostReply({ method, path, why, cause })
    : new Unreachable({ method, path, why, cause })
}
