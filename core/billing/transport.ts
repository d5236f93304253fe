/**
 * Sends one request and returns the complete reply, or an error that says how far it got. Knows HTTP only.
 *
 * A write is claimed when its connection is established and it may leave, just before it is sent: a failed connection costs
 * no claim, and a claimed request leaves at once or never.
 */
import got, { RequestError } from 'got'
import { once } from 'node:events'
import { type ClientRequest, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { Socket } from 'node:net'
import { createConnections } from './connections.ts'
import { LostReply, SentTooLate, Unreachable, UnexpectedReply } from './errors.ts'
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
  /** For writes that cannot be looked up later: a closed keep-alive connection must not make them unknown. */
  freshConnection?: boolean
  /**
   * Of a read, called just before each try. Of a write, once it has left the queue and its connection stands, just before it
   * is sent. Where it throws, or takes more than `sendWithinMs` for a write, the request never leaves.
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
    const { method, path, query, body, token, signal } = request
    const tooLarge = new AbortController()
    const givenUp = new AbortController()
    let left = false
    let opening: Promise<ClientRequest> | undefined
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
      // got writes head and body in the turn in which it gets the request: if the process stops at its end, all bytes still
      // arrive (median 0.3 ms later; with and without TLS, bodies of 2 and 60 KB).
      request(url, options) {
        const opened = (url.protocol === 'https:' ? requestHttps : requestHttp)(url, options)
        opening = untilItMayLeave(opened, request, givenUp.signal).then(() => {
          left = true
          return opened
        })
        return opening
      },
    })
    void sending.on('downloadProgress', ({ transferred }) => {
      if (transferred > maxResponseBytes) tooLarge.abort()
    })
    try {
      const { statusCode, body: bytes, headers } = await sending
      return { status: statusCode, bytes, headers }
    } catch (error) {
      // Unless it has left, it never leaves now. Its claim, if it has begun, ends first: nobody claims for a failed request.
      givenUp.abort()
      const refusal: unknown = await opening?.then(
        () => undefined,
        (why: unknown) => why,
      )
      if (refusal !== undefined && refusal !== givenUp.signal.reason) throw refusal
      signal?.throwIfAborted()
      if (tooLarge.signal.aborted) {
        const why = `more than ${maxResponseBytes} bytes`
        throw new UnexpectedReply({ method, path, problem: 'tooLarge', why })
      }
      if (!(error instanceof RequestError)) throw error
      // got's own error contains the request with its headers, so only its cause is passed on.
      const why = tellConnectionFailure(error)
      const Loss = left ? LostReply : Unreachable
      throw new Loss({ method, path, why, cause: error.cause ?? new Error(why) })
    }
  }
}

/**
 * Resolves in the turn of the event loop in which the request is to leave, once its connection is established and it is
 * claimed. Destroys it otherwise.
 * @throws {Unreachable}
 * @throws {SentTooLate}
 * @throws what `beforeSend` throws, or the signal's reason
 */
async function untilItMayLeave(
  opened: ClientRequest,
  { method, path, departure, beforeSend: claim }: Parameters<Transport>[0],
  givenUp: AbortSignal,
): Promise<void> {
  let closed = false
  opened.once('error', () => (closed = true))
  // Not a reply to this request. got would wait for another one until its timeout.
  const endEarly = () => opened.destroy()
  opened.once('response', endEarly)
  try {
    await connected(opened, givenUp).catch((cause: unknown) => {
      givenUp.throwIfAborted()
      throw new Unreachable({ method, path, why: tellConnectionFailure(cause as Error), cause })
    })
    if (claim === undefined) await departure.leave(givenUp)
    else {
      await departure.possible(givenUp)
      // The wall clock, too: the monotonic clock stops while the machine is suspended.
      const begun = { monotonic: performance.now(), wall: Date.now() }
      const msSince = () => Math.max(performance.now() - begun.monotonic, Date.now() - begun.wall)
      await claim()
      const late = AbortSignal.timeout(Math.max(0, Math.floor(sendWithinMs - msSince())))
      await departure.leave(AbortSignal.any([givenUp, late])).catch((error: unknown) => {
        throw error === late.reason ? new SentTooLate({ method, path, ms: sendWithinMs }) : error
      })
      if (msSince() > sendWithinMs) throw new SentTooLate({ method, path, ms: msSince() })
    }
    givenUp.throwIfAborted()
    if (closed || opened.destroyed)
      throw new Unreachable({ method, path, why: 'the connection was closed before the request left' })
    opened.off('response', endEarly)
  } catch (error) {
    opened.destroy()
    throw error
  }
}

/** Resolves when the connection is established (over TLS: secured), so that the first byte could leave. */
async function connected(request: ClientRequest, signal: AbortSignal): Promise<void> {
  const [socket] = (await once(request, 'socket', { signal })) as [Socket & { secureConnecting?: boolean }]
  if (socket.secureConnecting === true) await once(socket, 'secureConnect', { signal })
  else if (socket.connecting) await once(socket, 'connect', { signal })
}

/** For people: why a connection failed. The system and OpenSSL say it in words of their own. */
const connectionFailures: readonly (readonly [code: RegExp, why: string])[] = [
  [/^ECONNREFUSED$/, 'nothing listens there'],
  [/^ENOTFOUND$/, 'there is no host of that name'],
  [/^EAI_/, 'the name of the host could not be looked up'],
  [/^(EHOSTUNREACH|ENETUNREACH|ENETDOWN)$/, 'no network leads there'],
  [
    /^(EPROTO|ERR_SSL_)/,
    'what answers there does not speak TLS as https needs it, so perhaps its address begins with http://',
  ],
  [/^CERT_HAS_EXPIRED$/, 'its certificate has expired'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'its certificate is for another host'],
  [
    /SELF_SIGNED|^UNABLE_TO_(VERIFY|GET_ISSUER)/,
    'this machine does not trust its certificate (NODE_EXTRA_CA_CERTS adds an authority)',
  ],
  [/^ECONNRESET$/, 'the connection was closed'],
  [/^HPE_/, 'what answers there does not speak HTTP'],
]

/** For example `nothing listens there (ECONNREFUSED 127.0.0.1:1)`. */
function tellConnectionFailure(error: NodeJS.ErrnoException): string {
  const { code = '', message } = error
  const [, why] = connectionFailures.find(([pattern]) => pattern.test(code)) ?? []
  if (why === undefined) return code === '' ? message : `${code}: ${message}`
  const { address, port, hostname } = error as { address?: string; port?: number; hostname?: string }
  const where = address === undefined ? hostname : `${address}:${port}`
  return `${why} (${where === undefined ? code : `${code} ${where}`})`
}
