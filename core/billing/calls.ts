/** How one operation becomes requests: its turn at the rate limit, the token, the reply, the next try. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Authorization } from './authorization.ts'
import { RateLimited, ServiceFault, Unauthorized } from './errors.ts'
import type { Admission, Lane, RateLimiter } from './rate-limit.ts'
import { retryAfterMs, toError } from './reply.ts'
import { retryRead } from './retry.ts'
import type { Reply, Request, Transport } from './transport.ts'

/** One try of one request: `status` is undefined where no whole reply came. */
export interface Try {
  operation: string
  status: number | undefined
  /** From leaving to the whole reply. */
  ms: number
  attempt: number
  /** In the queue of the rate limit. */
  waitedMs: number
  /** Of a list. */
  page?: number
}
export type CallObserver = (tried: Try) => void

interface ReadCall {
  operation: string
  path: string
  query?: Readonly<Record<string, string>>
  signal?: AbortSignal | undefined
  tries?: number | undefined
  /** Before each request; of a write once its connection stands. */
  beforeSend?: (() => void | Promise<void>) | undefined
}

interface WriteCall extends ReadCall {
  method: 'POST' | 'PATCH' | 'DELETE'
  body?: unknown
  freshConnection?: boolean
}

/** Makes the result of a reply that is a success, or throws. */
type Take<T> = (request: Request, reply: Reply) => T

export interface Calls {
  read: <T>(call: ReadCall, take: Take<T>) => Promise<T>
  write: <T>(call: WriteCall, take: Take<T>) => Promise<T>
}

interface CallsSettings {
  transport: Transport
  limiter: RateLimiter
  lanes: readonly Lane[]
  authorization: Authorization
  onRequest: CallObserver | undefined
  readWaitMs: (attempt: number) => number
}

export function createCalls(settings: CallsSettings): Calls {
  const { authorization, readWaitMs } = settings
  const send = createSend(settings)

  const withToken = async <T>(call: Omit<Sending, 'token'>, take: Take<T>): Promise<T> => {
    const token = await authorization.token()
    try {
      return await send({ ...call, token }, take)
    } catch (error) {
      if (!(error instanceof Unauthorized)) throw error
      const renewed = await authorization.renewed(token)
      if (renewed === undefined) throw error
      if (call.method === 'GET') return await send({ ...call, token: renewed }, take)
      // A write has to be claimed again before it leaves again. A gateway's 401 does not say that the service has not
      // acted on it.
      throw error.effect === 'none' ? error.renewed() : error
    }
  }

  return {
    read: (call, take) =>
      retryRead({
        read: (attempt) => withToken({ ...call, method: 'GET', attempt }, take),
        waitMs: readWaitMs,
        tries: call.tries,
        signal: call.signal,
      }),
    write: ({ body, ...call }, take) =>
      withToken({ ...call, attempt: 1, ...(body !== undefined && { body: JSON.stringify(body) }) }, take),
  }
}

interface Sending extends Request {
  operation: string
  attempt: number
}

function createSend({ transport, limiter, lanes, onRequest }: CallsSettings) {
  return async <T>(sending: Sending, take: Take<T>): Promise<T> => {
    const { signal } = sending
    const { waitedMs, release } = await limiter.admit({ write: sending.method !== 'GET', lanes, signal })
    const reply = await ask(sending, { sentAt: performance.now(), waitedMs, release })
    // The request that stood behind this one is to leave before this reply is parsed (2 ms for a page of 100).
    await nextTurn()
    return take(sending, reply)
  }

  /** Its turn ends with its reply, and what the reply says of the rate holds from then on. */
  async function ask(
    sending: Sending,
    { sentAt, waitedMs, release }: Admission & { sentAt: number },
  ): Promise<Reply> {
    let status: number | undefined
    try {
      const isRead = sending.method === 'GET'
      if (isRead) await sending.beforeSend?.()
      const reply = await transport(isRead ? { ...sending, beforeSend: undefined } : sending)
      status = reply.status
      const error = toError(sending, reply)
      if (error instanceof RateLimited) limiter.slowDown(sentAt)
      if (error instanceof RateLimited || error instanceof ServiceFault)
        limiter.pause(retryAfterMs(reply) ?? 0)
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
