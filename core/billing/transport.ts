/**
 * Sends one request and returns the complete reply, or an error that says how far it got. Knows HTTP only.
 *
 * A write is claimed when its connection is established and it may leave, just before it is sent: a failed connection costs
 * no claim, and a claimed request leaves at once or never.
 */
import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { Socket } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { createConnections } from './connections.ts'
import { BillingError, LostReply, SentTooLate, Unreachable, UnexpectedReply } from './errors.ts'
import type { Departure } from './rate-limit.ts'

/**
 * A claimed request leaves within this time of the start of its claim, or never. A sender that takes over a run waits as
 * long before its first lookup, so this is a constant, not a setting: both must use the same. A claim takes 2 to 20 ms.
 */
export const sendWithinMs = 2_000

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
 * @throws {SentTooLate}
 * @throws {LostReply}
 * @throws {UnexpectedReply}
 * @throws the signal's reason if it is aborted, and what `beforeSend` throws
 */
export function createTransport(settings: TransportSettings): Transport {
  const { concurrency: maxConnections, maxResponseBytes, timeoutSeconds } = settings
  const base = settings.baseUrl.replace(/\/+$/, '')
  const [scheme, open] =
    new URL(base).protocol === 'https:'
      ? (['https', requestHttps] as const)
      : (['http', requestHttp] as const)
  const kept = createConnections({ url: base, maxConnections, keepAlive: true })[scheme]
  const fresh = createConnections({ url: base, maxConnections, keepAlive: false })[scheme]
  return async ({ method, path, query, body, token, signal, departure, ...options }) => {
    const timeout = AbortSignal.timeout(Math.ceil(timeoutSeconds * 1000))
    const ended = signal === undefined ? timeout : AbortSignal.any([timeout, signal])
    ended.throwIfAborted()
    const search = query === undefined ? '' : `?${new URLSearchParams(query).toString()}`
    const request = open(`${base}${path}${search}`, {
      method,
      agent: options.freshConnection === true ? fresh : kept,
      headers: {
        'user-agent': 'connector',
        accept: 'application/json',
        'accept-encoding': Object.keys(decoders).join(', '),
        ...settings.headers,
        authorization: `Token ${token}`,
        // Caches must revalidate: an old response says nothing about the list now.
        ...(method === 'GET' && { 'cache-control': 'no-cache' }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
    })
    let left = false
    try {
      await untilItMayLeave({ request, method, path, departure, claim: options.beforeSend, ended })
      left = true
      // Head and body are written in this turn of the event loop: if the process stops at its end, all bytes still arrive
      // (median 0.3 ms later; with and without TLS, bodies of 2 and 60 KB).
      request.end(body)
      const [response] = (await once(request, 'response', { signal: ended })) as [IncomingMessage]
      const bytes = await readBody(response, { method, path, most: maxResponseBytes, signal: ended })
      return { status: response.statusCode ?? 0, bytes, headers: response.headers }
    } catch (error) {
      request.destroy()
      signal?.throwIfAborted()
      if (error instanceof BillingError) throw error
      const isTimeout = error === timeout.reason || (left && timeout.aborted)
      if (!left && !isTimeout) throw error
      const cause = isTimeout ? new Error(`ETIMEDOUT: no reply within ${timeoutSeconds} s`) : error
      throw new (left ? LostReply : Unreachable)({ method, path, why: sentenceOf(cause), cause })
    }
  }
}

/**
 * Resolves in the turn of the event loop in which the request is to leave, once its connection is established (over TLS:
 * secured) and it is claimed.
 * @throws {Unreachable}
 * @throws {SentTooLate}
 * @throws what `claim` throws, or the signal's reason
 */
async function untilItMayLeave(of: {
  request: ClientRequest
  method: string
  path: string
  departure: Departure
  claim: Request['beforeSend']
  ended: AbortSignal
}): Promise<void> {
  const { request, method, path, departure, claim, ended } = of
  const closed: { by?: Error } = {}
  request.on('error', (error) => (closed.by = error))
  // A reply to nothing: without this, it would count as the reply to this request.
  const endEarly = () => request.destroy()
  request.once('response', endEarly)
  try {
    await connected(request, ended)
  } catch (cause) {
    ended.throwIfAborted()
    throw new Unreachable({ method, path, why: sentenceOf(cause), cause })
  }
  if (claim !== undefined) await departure.possible(ended)
  // The wall clock, too: the monotonic clock stops while the machine is suspended.
  const begun = { monotonic: performance.now(), wall: Date.now() }
  const msSince = () => Math.max(performance.now() - begun.monotonic, Date.now() - begun.wall)
  await claim?.()
  const late = claim && AbortSignal.timeout(Math.max(0, Math.floor(sendWithinMs - msSince())))
  await departure
    .leave(late === undefined ? ended : AbortSignal.any([ended, late]))
    .catch((error: unknown) => {
      throw error === late?.reason ? new SentTooLate({ method, path, ms: sendWithinMs }) : error
    })
  if (claim !== undefined && msSince() > sendWithinMs) throw new SentTooLate({ method, path, ms: msSince() })
  ended.throwIfAborted()
  if (closed.by !== undefined || request.destroyed)
    throw new Unreachable({ method, path, why: 'the connection was closed before the request left' })
  request.off('response', endEarly)
}

async function connected(request: ClientRequest, signal: AbortSignal): Promise<void> {
  const [socket] = (await once(request, 'socket', { signal })) as [Socket & { secureConnecting?: boolean }]
  if (socket.secureConnecting === true) await once(socket, 'secureConnect', { signal })
  else if (socket.connecting) await once(socket, 'connect', { signal })
}

const decoders = { gzip: createGunzip, deflate: createInflate, br: createBrotliDecompress }

/**
 * @param of.most measured after decompression
 * @throws {UnexpectedReply}
 */
async function readBody(
  response: IncomingMessage,
  of: { method: string; path: string; most: number; signal: AbortSignal },
): Promise<Uint8Array> {
  const { method, path, most, signal } = of
  const chunks: Buffer[] = []
  let bytes = 0
  const collect = async (body: AsyncIterable<Buffer>) => {
    for await (const chunk of body) {
      bytes += chunk.length
      if (bytes > most)
        throw new UnexpectedReply({ method, path, problem: 'tooLarge', why: `more than ${most} bytes` })
      chunks.push(chunk)
    }
  }
  const decoder = decoders[response.headers['content-encoding'] as keyof typeof decoders]
  await (decoder === undefined
    ? pipeline(response, collect, { signal })
    : pipeline(response, decoder(), collect, { signal }))
  return Buffer.concat(chunks)
}

function sentenceOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause)
  return 'code' in cause ? `${String(cause.code)}: ${cause.message}` : cause.message
}
