/** Turns an operation into requests: rate limit, token, reply, retries. */
import { setTimeout as wait } from 'node:timers/promises'
import { BillingError, PauseAsked, RateLimited, ServiceFault, Unauthorized } from './errors.ts'
import type { Admission, RateLimiter, Spacing } from './rate-limit.ts'
import { retryAfterMs, toError } from './reply.ts'
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

export interface ReadOptions extends Pick<Request, 'signal'> {
  /** Number of tries before it counts as lost. Default 8; fewer if someone waits for the result. */
  tries?: number
}

export type WriteOptions = Pick<Request, 'signal' | 'freshConnection' | 'beforeSend'>

type Call = Pick<Request, 'path'> & { operation: string }
type ReadCall = Call & Pick<Request, 'query' | 'beforeSend'> & ReadOptions
type WriteCall = Call & Pick<Request, 'method'> & WriteOptions & { body?: unknown }

/** Turns a successful reply into the result, or throws. */
type ParseReply<T> = (request: Request, reply: Reply) => T

export interface Calls {
  /**
   * Retries until it succeeds, fails for good, or has used up its tries. Retry-After is handled by the rate limiter, which
   * every try passes.
   */
  read: <T>(call: ReadCall, parse: ParseReply<T>) => Promise<T>
  write: <T>(call: WriteCall, parse: ParseReply<T>) => Promise<T>
}

export interface CallSettings {
  /** Called after every try of every request. */
  onRequest?: CallObserver | undefined
  /** Milliseconds to wait after the n-th failed try of a read. Default: full jitter up to 30 s. */
  readWaitMs?: ((attempt: number) => number) | undefined
  /** A longer pause that the service asks for fails the request instead. Default: none. */
  mostPauseMs?: number | undefined
}

interface CallsSettings extends CallSettings {
  transport: Transport
  gate: RateLimiter
  spacings: readonly Spacing[]
  authorization: Authorization
  watch?: TroubleWatch | undefined
}

/** The default number of tries before a read counts as lost. */
const defaultTries = 8
const firstWaitMs = 1000
const maxWaitMs = 30_000

/** The wait after a failed try (1, 2, ...): exponential with full jitter, at most 30 s. */
export function fullJitter(attempt: number, random: () => number = Math.random): number {
  return random() * Math.min(maxWaitMs, firstWaitMs * 2 ** (attempt - 1))
}

export function createCalls(settings: CallsSettings): Calls {
  const { authorization, gate, onRequest, spacings, transport, watch } = settings
  const { readWaitMs = fullJitter, mostPauseMs = Infinity } = settings
  watch?.follow(() => gate.paused)

  async function withToken<T>(call: Omit<Sending, 'token'>, parse: ParseReply<T>): Promise<T> {
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

  /** Sends a request once it is admitted. */
  async function send<T>(sending: Sending, parse: ParseReply<T>): Promise<T> {
    const { method, signal } = sending
    const turn = gate.admit({ write: method !== 'GET', spacings, signal })
    const admission = await (watch?.queue(turn) ?? turn)
    try {
      const reply = await exchange(sending, admission)
      const parsed = parse(sending, reply)
      watch?.answered()
      return parsed
    } catch (error) {
      if (error instanceof BillingError) watch?.failed(error)
      throw error
    }
  }

  /** Frees the request's place with the reply, and applies what the reply says about the rate. */
  async function exchange(sending: Sending, { waitedMs, release, departure }: Admission): Promise<Reply> {
    const { operation, attempt, method, path, token } = sending
    const sentAt = performance.now()
    let status: number | undefined
    try {
      const isRead = method === 'GET'
      if (isRead) await sending.beforeSend?.()
      const reply = await transport({ ...sending, departure, ...(isRead && { beforeSend: undefined }) })
      status = reply.status
      if (status !== 401) authorization.accepted(token)
      const error = toError(sending, reply)
      if (error instanceof RateLimited) gate.slowDown({ sentAt })
      if (error instanceof RateLimited || error instanceof ServiceFault) {
        const pauseMs = retryAfterMs(reply) ?? 0
        if (pauseMs > mostPauseMs) throw new PauseAsked({ method, path, status, pauseMs })
        gate.pause(pauseMs)
      }
      if (error !== undefined) throw error
      return reply
    } finally {
      release()
      const page = sending.query?.['page']
      const ms = performance.now() - sentAt
      onRequest?.({ operation, status, ms, attempt, waitedMs, ...(page !== undefined && { page: +page }) })
    }
  }

  return {
    async read({ tries = defaultTries, ...call }, parse) {
      for (let attempt = 1; ; attempt++) {
        try {
          return await withToken({ ...call, method: 'GET', attempt }, parse)
        } catch (error) {
          if (!(error instanceof BillingError) || !error.retryable || attempt >= tries) throw error
        }
        // Throw the signal's own reason, not the timer's error.
        const { signal } = call
        await wait(readWaitMs(attempt), undefined, { signal }).catch(() => signal?.throwIfAborted())
      }
    },
    write: ({ body, ...call }, parse) =>
      withToken({ ...call, attempt: 1, ...(body !== undefined && { body: JSON.stringify(body) }) }, parse),
  }
}

interface Sending extends Request {
  operation: string
  attempt: number
}

/** Returns the token. `rejected`: the token that the service rejected, so that the source is read again. */
export type TokenSource = (options?: { rejected: string }) => Promise<string>

/** The token in use, and how it is renewed. */
export class Authorization {
  readonly #source: TokenSource
  #token: string | undefined
  /** The token that replaced a rejected one, until the service accepts it. */
  #replacement: string | undefined

  constructor(source: TokenSource) {
    this.#source = source
  }

  async token(): Promise<string> {
    this.#token ??= toToken(await this.#source())
    return this.#token
  }

  /** Called with the token that got a 401. Returns the token to try instead, if there is another. */
  async renewed(rejected: string): Promise<string | undefined> {
    if (this.#token === rejected) this.#token = toToken(await this.#source({ rejected }))
    this.#replacement = this.#token === rejected ? undefined : this.#token
    return this.#replacement
  }

  /**
   * Like `renewed`, for a request that others repeat: also undefined if the rejected token is itself the replacement of
   * a rejected one. A source that has another token each time would never let such a request end.
   */
  async renewedOnce(rejected: string): Promise<string | undefined> {
    const isReplacement = rejected === this.#replacement
    const token = await this.renewed(rejected)
    if (!isReplacement) return token
    this.#replacement = undefined
    return undefined
  }

  /** Called with a token that the service has accepted. */
  accepted(token: string): void {
    if (token === this.#replacement) this.#replacement = undefined
  }
}

function toToken(token: string): string {
  if (!/^[\u0021-\u007e]+$/.test(token))
    throw new TypeError('the token is empty or contains spaces or control characters; use the bare token')
  return token
}
