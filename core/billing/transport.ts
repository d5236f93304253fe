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
  const { concurrency: maxConnections, maxResponseBytes, timeoutSeconds } = settings
  const base = settings.baseUrl.replace(/\/+$/, '')
  const kept = createConnections({ url: base, maxConnections, keepAlive: true })
  const fresh = createConnections({ url: base, maxConnections, keepAlive: false })
  const http = got.extend({
    headers: { 'user-agent': 'connector', accept: 'application/json', ...settings.headers },
    retry: { limit: 0 },
    followRedirect: false,
    throwHttpErrors: false,
    responseType: 'buffer',
    timeout: { request: timeoutSeconds * 1000 },
  })
  return async (request) => {
    const { method, path, query, body, token, signal, departure, beforeSend: claim } = request
    const tooLarge = new AbortController()
    const claimed = claimedRequest({ method, path, claim, departure })
    const search = query === undefined ? '' : `?${new URLSearchParams(query).toString()}`
    const sending = http(`${base}${path}${search}`, {
      method,
      agent: request.freshConnection === true ? fresh : kept,
      signal: AbortSignal.any([tooLarge.signal, ...(signal === undefined ? [] : [signal])]),
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
      if (tooLarge.signal.aborted) {
        const why = `more than ${maxResponseBytes} bytes`
        throw new UnexpectedReply({ method, path, problem: 'tooLarge', why })
      }
      if (!(error instanceof RequestError)) throw error
      // got's own error contains the request with its headers, so only its cause is passed on.
      const why = `${error.code}: ${error.message}`
      const Loss = claimed.left ? LostReply : Unreachable
      throw new Loss({ method, path, why, cause: error.cause ?? new Error(why) })
    }
  }
}
