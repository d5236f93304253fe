/**
 * A request that is claimed when its connection is established, just before it is sent: a failed connection costs no
 * claim, and a claimed request leaves at once or never.
 */
import { once } from 'node:events'
import { type ClientRequest, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { Socket } from 'node:net'
import type { Options } from 'got'
import { SentTooLate, Unreachable } from './errors.ts'

/**
 * A claimed request leaves within this time of the start of its claim, or never. A sender that takes over a run waits as
 * long before its first lookup, so this is a constant, not a setting: both must use the same. A claim takes 2 to 20 ms.
 */
export const sendWithinMs = 2_000

export interface ClaimedRequest {
  /** For got: opens the connection, claims, and passes the request to got, which writes it in the same turn of the event loop. */
  open: NonNullable<Options['request']>
  /** Whether got has the request, so that its bytes may have left. */
  readonly left: boolean
  /** Why it was not sent. */
  readonly refusal: unknown
}

/**
 * Creates a claimed request. got writes head and body in the turn in which it gets the request: if a process stops itself
 * at the end of that turn, all bytes still arrive (median 0.3 ms later; with and without TLS, bodies of 2 and 60 KB).
 */
export function claimedRequest(options: {
  method: string
  path: string
  claim: () => void | Promise<void>
  timeoutMs: number
  signal: AbortSignal
}): ClaimedRequest {
  const { method, path, claim, timeoutMs, signal } = options
  const state = { left: false, refusal: undefined as unknown }
  return {
    get left() {
      return state.left
    },
    get refusal() {
      return state.refusal
    },
    async open(url, requestOptions, onResponse) {
      const send = url.protocol === 'https:' ? requestHttps : requestHttp
      const request = send(url, requestOptions, onResponse)
      const closed: { error?: Error } = {}
      request.once('error', (error) => {
        closed.error = error
      })
      try {
        await connected({ request, method, path, timeoutMs, signal })
        // The wall clock, too: the monotonic clock stops while the machine is suspended.
        const begun = { monotonic: performance.now(), wall: Date.now() }
        await claim()
        const ms = Math.max(performance.now() - begun.monotonic, Date.now() - begun.wall)
        if (ms > sendWithinMs) throw new SentTooLate({ method, path, ms })
        if (closed.error !== undefined || request.destroyed)
          throw new Unreachable({ method, path, why: 'the connection was closed before the request left' })
        state.left = true
        return request
      } catch (error) {
        state.refusal = error
        request.destroy()
        throw error
      }
    },
  }
}

/**
 * Resolves when the connection is established (over TLS: secured), so that the first byte could leave.
 *
 * @throws {Unreachable} if it is not established in time
 * @throws the signal's reason if it is aborted
 */
async function connected(options: {
  request: ClientRequest
  method: string
  path: string
  timeoutMs: number
  signal: AbortSignal
}): Promise<void> {
  const { request, method, path, timeoutMs, signal } = options
  const limited = { signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]) }
  try {
    const [socket] = (await once(request, 'socket', limited)) as [Socket & { secureConnecting?: boolean }]
    if (socket.secureConnecting === true) await once(socket, 'secureConnect', limited)
    else if (socket.connecting) await once(socket, 'connect', limited)
  } catch (cause) {
    signal.throwIfAborted()
    const why = limited.signal.aborted ? `none within ${timeoutMs / 1000} s` : sentenceOf(cause)
    throw new Unreachable({ method, path, why, cause })
  }
}

function sentenceOf(cause: unknown): string {
  const { code, message } = cause as NodeJS.ErrnoException
  return code === undefined ? message : `${code}: ${message}`
}
