/** Turns an operation into requests: rate limit, token, reply, retries. */
import type { Authorization } from './authorization.ts'
import { BillingError, PauseAsked, RateLimited, ServiceFault, Unauthorized } from './errors.ts'
import type { Admission, RateLimiter, Spacing } from './rate-limit.ts'
import { retryAfterMs, toError } from './reply.ts'
import { retryRead } from './retry.ts'
import type { Reply, Request, Transport } from './transport.ts'
import type { TroubleWatch } from './trouble-watch.ts'

/** One try of a request; `status` is undefined if no complete reply came. */
export interface Try {
  operation: string
  status: number | undefined
  /** Milliseconds from sending to the complete reply. */
  ms: number
  attempt: number
  /** Milliseconds in the queue of the rate limit. */
  waitedMs: number
  /** Page of a list. */
  page?: number
}
export type CallObserver = (tried: Try) => void

interface ReadCall {
  operation: string
  path: string
  query?: Readonly<Record<string, string>>
  signal?: AbortSignal | undefined
  tries?: number | undefined
  /** Called before each request; for a write, once its connection is established. */
  beforeSend?: (() => void | Promise<void>) | undefined
  /** Called when a request has failed, before it is retried. */
  onFailure?: (() => void | Promise<void>) | undefined
}

interface WriteCall extends ReadCall {
  method: 'POST' | 'PATCH' | 'DELETE'
  body?: unknown
  freshConnection?: boolean
}

/** Turns a successful reply into the result, or throws. */
type ParseReply<T> = (request: Request, reply: Reply) => T

export interface Calls {
  read: <T>(call: ReadCall, parse: ParseReply<T>) => Promise<T>
  write: <T>(call: WriteCall, parse: ParseReply<T>) => Promise<T>
}

interface CallsSettings {
  transport: Transport
  gate: RateLimiter
  spacings: readonly Spacing[]
  authorization: Authorization
  onRequest: CallObserver | undefined
  readWaitMs: (attempt: number) => number
  watch: TroubleWatch | undefined
  mostPauseMs: number
}

export function createCalls(settings: CallsSettings): Calls {
  const { authorization, readWaitMs } = settings
  const send = createSend(settings)

  const withToken = async <T>(call: Omit<Sending, 'token'>, parse: ParseReply<T>): Promise<T> => {
    const token = await authorization.token()
    try {
      return await send({ ...call, token }, parse)
    } catch (error) {
      if (!(error instanceof Unauthorized)) throw error
      if (call.method === 'GET') {
        const renewed = await authorization.renewed(token)
        if (renewed === undefined) throw error
        return await send({ ...call, token: renewed }, parse)
      }
      // A write must be claimed again before it is sent again. A gateway's 401 does not prove that the service has not
      // acted on it.
      const renewed = await authorization.renewedOnce(token)
      throw renewed !== undefined && error.effect === 'none' ? error.renewed() : error
    }
  }

  return {
    read: (call, parse) =>
      retryRead({
        read: (attempt) => withToken({ ...call, method: 'GET', attempt }, parse),
        waitMs: readWaitMs,
        tries: call.tries,
        signal: call.signal,
      }),
    write: ({ body, ...call }, parse) =>
      withToken({ ...call, attempt: 1, ...(body !== undefined && { body: JSON.stringify(body) }) }, parse),
  }
}

interface Sending extends Request {
  operation: string
  attempt: number
  onFailure?: (() => void | Promise<void>) | undefined
}

function createSend(settings: CallsSettings) {
  const { transport, gate, spacings, authorization, onRequest, watch, mostPauseMs } = settings
  watch?.follow(() => gate.paused)
  return async <T>(sending: Sending, parse: ParseReply<T>): Promise<T> => {
    const { signal } = sending
    const turn = gate.admit({ write: sending.method !== 'GET', spacings, signal })
    const admission = await (watch?.queue(turn) ?? turn)
    try {
      const reply = await exchange(sending, { ...admission, sentAt: performance.now() })
      const parsed = parse(sending, reply)
      watch?.answered()
      return parsed
    } catch (error) {
      if (error instanceof BillingError) watch?.failed(error)
      if (error instanceof BillingError) await sending.onFailure?.()
      throw error
    }
  }

  /** Sends the request and releases its slot with the reply; applies what the reply says about the rate. */
  async function exchange(
    sending: Sending,
    { sentAt, waitedMs, release, departure }: Admission & { sentAt: number },
  ): Promise<Reply> {
    let status: number | undefined
    try {
      const isRead = sending.method === 'GET'
      if (isRead) await sending.beforeSend?.()
      const reply = await transport({ ...sending, departure, ...(isRead && { beforeSend: undefined }) })
      status = reply.status
      if (status !== 401) authorization.accepted(sending.token)
      const error = toError(sending, reply)
      if (error instanceof RateLimited) gate.slowDown({ sentAt })
      if (error instanceof RateLimited || error instanceof ServiceFault) {
        const pauseMs = retryAfterMs(reply) ?? 0
        if (pauseMs > mostPauseMs)
          throw new PauseAsked({ method: sending.method, path: sending.path, status, pauseMs })
        gate.pause(pauseMs)
      }
      if (error !== undefined) throw error
      return reply
    } finally {
      release()
      const { operation, attempt } = sending
      const page = sending.query?.['page']
      const ms = performance.now() - sentAt
      onRequest?.({ operation, status, ms, attempt, waitedMs, ...(page !== undefined && { page: +page }) })
    }
  }
}
