/**
 * A request that is claimed when its connection is established and it may leave, just before it is sent: a failed
 * connection costs no claim, and a claimed request leaves at once or never.
 */
import { once } from 'node:events'
import { type ClientRequest, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { Socket } from 'node:net'
import type { Options } from 'got'
import { SentTooLate, Unreachable } from './errors.ts'
import type { Departure } from './rate-limit.ts'

/**
 * A claimed request leaves within this time of the start of its claim, or never. A sender that takes over a run waits as
 * long before its first lookup, so this is a constant, not a setting: both must use the same. A claim takes 2 to 20 ms.
 */
export const sendWithinMs = 2_000

interface ClaimedRequest {
  /** For got: opens the connection, claims, and passes the request to got, which writes it in the same turn of the event loop. */
  open: NonNullable<Options['request']>
  /** Whether got has the request, so that its bytes may have left. */
  readonly left: boolean
  /** Why it was not sent; undefined if it was sent or given up. */
  readonly refusal: unknown
  /**
   * Gives it up unless it has left: it never leaves then. Resolves when its claim, if it has begun, has ended, so that
   * nobody claims for a request that has failed.
   */
  giveUp(): Promise<void>
}

/**
 * Creates a claimed request. got writes head and body in the turn in which it gets the request: if a process stops itself
 * at the end of that turn, all bytes still arrive (median 0.3 ms later; with and without TLS, bodies of 2 and 60 KB).
 */
export function claimedRequest(options: {
  method: string
  path: string
  claim: (() => void | Promise<void>) | undefined
  departure: Departure
}): ClaimedRequest {
  const { method, path, claim, departure } = options
  const state = { left: false, refusal: undefined as unknown }
  const givenUp = new AbortController()
  const inTime = (ms: number) =>
    AbortSignal.any([givenUp.signal, AbortSignal.timeout(Math.max(0, Math.floor(ms)))])
  let opened: Promise<ClientRequest> | undefined
  const open = async (...[url, requestOptions]: Parameters<ClaimedRequest['open']>) => {
    const send = url.protocol === 'https:' ? requestHttps : requestHttp
    const request = send(url, requestOptions)
    const closed: { error?: Error } = {}
    request.once('error', (error) => {
      closed.error = error
    })
    // Not a reply to this request. got would wait for another one until its timeout.
    const endEarly = () => request.destroy()
    request.once('response', endEarly)
    try {
      await connected({ request, method, path, signal: givenUp.signal })
      if (claim !== undefined) await departure.possible(givenUp.signal)
      // The wall clock, too: the monotonic clock stops while the machine is suspended.
      const begun = { monotonic: performance.now(), wall: Date.now() }
      const msSince = () => Math.max(performance.now() - begun.monotonic, Date.now() - begun.wall)
      await claim?.()
      await departure.leave(claim === undefined ? givenUp.signal : inTime(sendWithinMs - msSince()))
      if (claim !== undefined && msSince() > sendWithinMs)
        throw new SentTooLate({ method, path, ms: msSince() })
      givenUp.signal.throwIfAborted()
      if (closed.error !== undefined || request.destroyed)
        throw new Unreachable({ method, path, why: 'the connection was closed before the request left' })
      request.off('response', endEarly)
      state.left = true
      return request
    } catch (thrown) {
      const isLate = thrown instanceof DOMException && thrown.name === 'TimeoutError'
      const error = isLate ? new SentTooLate({ method, path, ms: sendWithinMs }) : thrown
      if (error !== givenUp.signal.reason) state.refusal = error
      request.destroy()
      throw error
    }
  }
  return {
    get left() {
      return state.left
    },
    get refusal() {
      return state.refusal
    },
    open(url, requestOptions) {
      opened = open(url, requestOptions)
      return opened
    },
    async giveUp() {
      givenUp.abort()
      await opened?.catch(() => undefined)
    },
  }
}

/**
 * Resolves when the connection is established (over TLS: secured), so that the first byte could leave.
 *
 * @throws {Unreachable} if it is not established
 * @throws the signal's reason if it is aborted
 */
async function connected(options: {
  request: ClientRequest
  method: string
  path: string
  signal: AbortSignal
}): Promise<void> {
  const { request, method, path, signal } = options
  try {
    const [socket] = (await once(request, 'socket', { signal })) as [Socket & { secureConnecting?: boolean }]
    if (socket.secureConnecting === true) await once(socket, 'secureConnect', { signal })
    else if (socket.connecting) await once(socket, 'connect', { signal })
  } catch (cause) {
    signal.throwIfAborted()
    throw new Unreachable({ method, path, why: sentenceOf(cause), cause })
  }
}

function sentenceOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause)
  return 'code' in cause ? `${String(cause.code)}: ${cause.message}` : cause.message
}
