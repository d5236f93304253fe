/**
 * What can go wrong with a request, one class a meaning.
 *
 * Two facts are on each of them, because everything else is decided by them: `retryable`, whether the same read
 * may succeed a little later; and `effect`, what a write that ended like this can have done in the service.
 * No error ever holds the token: the causes are the operating system's errors, never a request object.
 */

/**
 * `none`: the service has not acted and the same write may be sent again (never sent, or its own 401, 403, 429).
 * `refused`: the service itself has read it and said no. `unknown`: it may have been done; look before sending again.
 */
export type Effect = 'none' | 'refused' | 'unknown'

export interface Failure {
  method: string
  path: string
  status?: number
  /** What the service said, one sentence each; see `words.ts`. */
  words?: readonly string[]
  cause?: unknown
}

export abstract class BillingError extends Error {
  abstract override readonly name: string
  abstract readonly retryable: boolean
  abstract readonly effect: Effect
  readonly method: string
  readonly path: string
  readonly status: number | undefined
  readonly messages: readonly string[]
  /** The message without the service's words, which may repeat what was sent, and without an id from a file. */
  readonly withoutValues: string

  /** `toMessage` gets the request with its status and what was said, as `GET /customers/ (404: Invalid page.)`. */
  constructor(failure: Failure, toMessage: (request: string) => string) {
    super(toMessage(where(failure)), failure.cause === undefined ? undefined : { cause: failure.cause })
    this.method = failure.method
    this.path = failure.path
    this.status = failure.status
    this.messages = failure.words ?? []
    const path = failure.path.replace(/^(\/[^/]+\/)[^/]+/, '$1...')
    this.withoutValues = toMessage(where({ ...failure, path, words: [] }))
  }
}

/** `GET /customers/ (404: Invalid page.)` */
function where({ method, path, status, words }: Failure): string {
  const said = [status, words?.length ? words.join('; ') : undefined].filter((part) => part !== undefined)
  return said.length === 0 ? `${method} ${path}` : `${method} ${path} (${said.join(': ')})`
}

interface Answered extends Failure {
  /** Whether the body is the service's own (`isServiceError`); else a gateway in front of it may have answered. */
  byService: boolean
  /** How long ago a cache had the answer from the service; undefined if no cache says that it answered. */
  ageMs?: number | undefined
}

/** What a status below 500 says of a write holds only where the service itself gave it. */
abstract class AnsweredError extends BillingError {
  readonly byService: boolean
  readonly ageMs: number | undefined
  readonly effect: Effect

  constructor(failure: Answered, { effect, says, hint }: { effect: Effect; says: string; hint: string }) {
    const advice = failure.byService
      ? hint
      : 'the reply is not in the form of the service, so a gateway gave it'
    super(failure, (request) => `${says}: ${request}; ${advice}`)
    this.byService = failure.byService
    this.ageMs = failure.ageMs
    this.effect = failure.byService ? effect : 'unknown'
  }
}

/** 401, also after the token's source was asked once more. A write may be sent again where that gave a new token. */
export class Unauthorized extends AnsweredError {
  override readonly name = 'Unauthorized'
  readonly retryable: boolean
  constructor(failure: Answered, { renewed = false } = {}) {
    const hint = 'put a valid one in place'
    super(failure, { effect: 'none', says: 'the service does not accept the token', hint })
    this.retryable = renewed
  }

  /** The same, once the token's source has given another token. */
  renewed(): Unauthorized {
    const { method, path, messages: words, byService } = this
    return new Unauthorized({ method, path, status: 401, words, byService }, { renewed: true })
  }
}

/** 403: the token is known, but not allowed to do this in this workspace. */
export class Forbidden extends AnsweredError {
  override readonly name = 'Forbidden'
  readonly retryable = false
  constructor(failure: Answered) {
    const hint = 'check the workspace and what the token may do'
    super(failure, { effect: 'none', says: 'not allowed', hint })
  }
}

/** 404. A gateway's is as good as a 502. */
export class NotFound extends AnsweredError {
  override readonly name = 'NotFound'
  readonly retryable: boolean
  constructor(failure: Answered) {
    // A create asks for no record: the service has no reason to miss one, so something else has answered.
    const isCreate = failure.method === 'POST' && /^\/[^/]+\/$/.test(failure.path)
    const effect = isCreate ? 'unknown' : 'refused'
    super(failure, { effect, says: 'not found', hint: 'check the id or the page' })
    this.retryable = !failure.byService
  }
}

/** 400, 409, 422: the service has read the request and said no, in `words`. A gateway's is as good as a 502. */
export class Refused extends AnsweredError {
  override readonly name = 'Refused'
  readonly retryable: boolean
  constructor(failure: Answered) {
    super(failure, { effect: 'refused', says: 'refused', hint: 'change what was sent' })
    this.retryable = !failure.byService
  }
}

/** 429: too many requests. The whole process is paused for `retryAfterMs` where the service named a time. */
export class RateLimited extends AnsweredError {
  override readonly name = 'RateLimited'
  readonly retryable = true
  readonly retryAfterMs: number | undefined
  constructor(failure: Answered & { retryAfterMs: number | undefined }) {
    const hint = 'lower BILLING_REQUESTS_PER_SECOND if this stays'
    super(failure, { effect: 'none', says: 'too many requests', hint })
    this.retryAfterMs = failure.retryAfterMs
  }
}

/** 5xx: the service or a gateway in front of it failed. */
export class ServiceFault extends BillingError {
  override readonly name = 'ServiceFault'
  readonly retryable = true
  readonly effect = 'unknown'
  constructor(failure: Failure) {
    super(failure, (request) => `the service failed: ${request}; it may work again in a while`)
  }
}

/** No connection came about (refused, DNS, TLS, the proxy, a timeout on the way), so nothing was sent. */
export class Unreachable extends BillingError {
  override readonly name = 'Unreachable'
  readonly retryable = true
  readonly effect = 'none'
  constructor(failure: Failure & { why: string }) {
    super(
      failure,
      (request) => `no connection for ${request}: ${failure.why}; check the address and the network`,
    )
  }
}

/** A claimed write was not sent within `sendWithinMs`, and never will be: the process had stood still. */
export class SentTooLate extends BillingError {
  override readonly name = 'SentTooLate'
  readonly retryable = true
  readonly effect = 'none'
  constructor(failure: Failure & { ms: number }) {
    super(
      failure,
      (request) =>
        `${request} was not sent: the process stood still for ${Math.round(failure.ms)} ms after claiming it`,
    )
  }
}

/** The request could have left, but no whole reply came: reset, timeout, cut off. */
export class LostReply extends BillingError {
  override readonly name = 'LostReply'
  readonly retryable = true
  readonly effect = 'unknown'
  constructor(failure: Failure & { why: string }) {
    super(
      failure,
      (request) => `no whole reply to ${request}: ${failure.why}; whether it was done is not known`,
    )
  }
}

/** A whole reply that is not what the interface promises; `what` says what it is instead. */
export class UnexpectedReply extends BillingError {
  override readonly name = 'UnexpectedReply'
  /** A body that is no JSON may be a gateway's page and pass; the others stay as they are. */
  readonly retryable: boolean
  readonly effect = 'unknown'
  readonly what: 'redirect' | 'notJson' | 'notTheShape' | 'tooLarge' | 'status'
  constructor(failure: Failure & { what: UnexpectedReply['what']; why: string }) {
    super(failure, (request) => `unexpected reply to ${request}: ${failure.why}; check BILLING_BASE_URL`)
    this.what = failure.what
    this.retryable = failure.what === 'notJson'
  }
}
