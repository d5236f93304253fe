/**
 * A request that is claimed after its connection stands and just before it leaves: a connection that fails costs no
 * claim, and what has been claimed leaves at once or never.
 */
import { once } from 'node:events'
import { type ClientRequest, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { Socket } from 'node:net'
import type { Options } from 'got'
import { SentTooLate, Unreachable } from './errors.ts'

/**
 * What has been claimed leaves within so long of the claim's beginning, or never. Whoever takes a run over waits as long
 * before its first lookup, so it is a constant and not a setting: both sides must have the same. A claim takes 2 to 20 ms.
 */
export const sendWithinMs = 2_000

export interface ClaimedRequest {
  /** For got: opens the connection, claims, and gives got the request to write in the same turn of the event loop. */
  open: NonNullable<Options['request']>
  /** Whether got has the request, so that its bytes may have left. */
  readonly left: boolean
  /** Why it has not. */
  readonly refusal: unknown
}

/**
 * got writes head and body in the turn in which it gets the request: of a process that stops itself when that turn ends,
 * all bytes arrive (0.3 ms later at the median; with and without TLS, bodies of 2 and 60 KB).
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
        // The wall clock as well: the monotonic one stands still in a machine that is suspended.
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
 * Resolves when the request has a connection on which its first byte could leave (over TLS: a secured one).
 *
 * @throws {Unreachable} where none comes about in time, and the signal's reason
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
