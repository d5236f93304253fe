/**
 * Errors of a request, one class for each meaning.
 *
 * Each has two properties on which everything else depends: `retryable`, whether the same read may succeed later; and
 * `effect`, what a write that ended this way may have done in the service. No error contains the token: causes are
 * errors of the operating system, never request objects.
 */

/**
 * `none`: the service has not acted, and the same write may be sent again (never sent, or the service's own 401, 403 or
 * 429). `refused`: the service itself rejected it. `unknown`: it may have been done; look it up before sending again.
 */
export type Effect = 'none' | 'refused' | 'unknown'

export interface Failure {
  method: string
  path: string
  status?: number
  /** The service's messages; see error-body.ts. */
  messages?: readonly string[]
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
  /** The message without the service's own messages, which may repeat what was sent, and without ids from a file. */
  readonly withoutValues: string

  /** `toMessage` gets the request with its status and messages, as `GET /customers/ (404: Invalid page.)`. */
  constructor(failure: Failure, toMessage: (request: string) => string) {
    super(
      toMessage(describeRequest(failure)),
      failure.cause === undefined ? undefined : { cause: failure.cause },
    )
    this.method = failure.method
    this.path = failure.path
    this.status = failure.status
    this.messages = failure.messages ?? []
    const path = failure.path.replace(/^(\/[^/]+\/)[^/]+/, '$1...')
    this.withoutValues = toMessage(describeRequest({ ...failure, path, messages: [] }))
  }
}

/** `GET /customers/ (404: Invalid page.)` */
function describeRequest({ method, path, status, messages }: Failure): string {
  const details = [status, messages?.length ? messages.join('; ') : undefined].filter(
    (part) => part !== undefined,
  )
  return details.length === 0 ? `${method} ${path}` : `${method} ${path} (${details.join(': ')})`
}

interface Answered extends Failure {
  /** Whether the body is the service's own (`isServiceError`); otherwise a gateway may have answered. */
  byService: boolean
  /** How long ago a cache had the answer from the service; undefined if no cache says that it answered. */
  ageMs?: number | undefined
}

/** A status below 500 says something about a write only if the service itself sent it. */
abstract class AnsweredError extends BillingError {
  readonly byService: boolean
  readonly ageMs: number | undefined
  readonly effect: Effect

  constructor(
    failure: Answered,
    { effect, summary, hint }: { effect: Effect; summary: string; hint: string },
  ) {
    const advice = failure.byService
      ? hint
      : 'the reply does not have the service’s format, so a gateway sent it'
    super(failure, (request) => `${summary}: ${request}; ${advice}`)
    this.byService = failure.byService
    this.ageMs = failure.ageMs
    this.effect = failure.byService ? effect : 'unknown'
  }
}

/** 401, also after the token was read again. A write may be sent again if that returned a new token. */
export class Unauthorized extends AnsweredError {
  override readonly name = 'Unauthorized'
  readonly retryable: boolean
  constructor(failure: Answered, { renewed = false } = {}) {
    const hint = 'set a valid one, and restart a worker that has the old one in its environment'
    super(failure, { effect: 'none', summary: 'the service does not accept the token', hint })
    this.retryable = renewed
  }

  /** The same error, when there is a new token. */
  renewed(): Unauthorized {
    const { method, path, messages, byService } = this
    return new Unauthorized({ method, path, status: 401, messages, byService }, { renewed: true })
  }
}

/** 403: the token is known, but lacks permission for this in this workspace. */
export class Forbidden extends AnsweredError {
  override readonly name = 'Forbidden'
  readonly retryable = false
  constructor(failure: Answered) {
    const hint = 'check the workspace and the permissions of the token'
    super(failure, { effect: 'none', summary: 'not allowed', hint })
  }
}

/** 404. One from a gateway counts as a 502. */
export class NotFound extends AnsweredError {
  override readonly name = 'NotFound'
  readonly retryable: boolean
  constructor(failure: Answered) {
    // A create does not refer to a record, so the service would not answer 404; something else has.
    const isCreate = failure.method === 'POST' && /^\/[^/]+\/$/.test(failure.path)
    const effect = isCreate ? 'unknown' : 'refused'
    super(failure, { effect, summary: 'not found', hint: 'check the id or the page' })
    this.retryable = !failure.byService
  }
}

/** 400, 409, 422: the service rejected the request; the reasons are in `messages`. One from a gateway counts as a 502. */
export class Refused extends AnsweredError {
  override readonly name = 'Refused'
  readonly retryable: boolean
  constructor(failure: Answered) {
    super(failure, { effect: 'refused', summary: 'refused', hint: 'change what was sent' })
    this.retryable = !failure.byService
  }
}

/** 429: too many requests. All requests pause for `retryAfterMs` if the service named a time. */
export class RateLimited extends AnsweredError {
  override readonly name = 'RateLimited'
  readonly retryable = true
  readonly retryAfterMs: number | undefined
  constructor(failure: Answered & { retryAfterMs: number | undefined }) {
    const hint = 'lower BILLING_REQUESTS_PER_SECOND if this persists'
    super(failure, { effect: 'none', summary: 'too many requests', hint })
    this.retryAfterMs = failure.retryAfterMs
  }
}

/** 429 or 5xx with a longer Retry-After than this client may wait: a person waits for it. */
export class PauseAsked extends BillingError {
  override readonly name = 'PauseAsked'
  readonly retryable = false
  readonly effect = 'unknown'
  constructor(failure: Failure & { pauseMs: number }) {
    const until = new Date(Date.now() + failure.pauseMs).toISOString().slice(0, 16).replace('T', ' ')
    super(failure, (request) => `the service asks for a pause until ${until} UTC: ${request}; try again then`)
  }
}

/** 5xx: the service or a gateway in front of it failed. 408: it waited too long for the rest of a request. */
export class ServiceFault extends BillingError {
  override readonly name = 'ServiceFault'
  readonly retryable = true
  readonly effect = 'unknown'
  constructor(failure: Failure) {
    super(failure, (request) => `the service failed: ${request}; it may recover`)
  }
}

/** No connection was established (refused, DNS, TLS, proxy, timeout), so nothing was sent. */
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

/** A claimed write was not sent within `sendWithinMs` and never will be: the process was suspended, or its disk was slow. */
export class SentTooLate extends BillingError {
  override readonly name = 'SentTooLate'
  readonly retryable = true
  readonly effect = 'none'
  constructor(failure: Failure & { ms: number }) {
    super(
      failure,
      (request) =>
        `${request} was not sent: claiming it took ${Math.round(failure.ms)} ms; the process was suspended, or its disk is slow`,
    )
  }
}

/** The request may have left, but no complete reply came: reset, timeout, cut off. */
export class LostReply extends BillingError {
  override readonly name = 'LostReply'
  readonly retryable = true
  readonly effect = 'unknown'
  constructor(failure: Failure & { why: string }) {
    super(
      failure,
      (request) => `no complete reply to ${request}: ${failure.why}; it may or may not have been done`,
    )
  }
}

/** A complete reply that does not match the API; `problem` says how. */
export class UnexpectedReply extends BillingError {
  override readonly name = 'UnexpectedReply'
  /** A body that is not JSON may come from a gateway and be temporary, as is a cache's; other problems persist. */
  readonly retryable: boolean
  readonly effect = 'unknown'
  readonly problem: 'redirect' | 'notJson' | 'notText' | 'notTheShape' | 'tooLarge' | 'status' | 'stale'
  constructor(failure: Failure & { problem: UnexpectedReply['problem']; why: string }) {
    const hints: Partial<Record<typeof failure.problem, string>> = {
      notText: 'the service must send UTF-8, or name its charset in Content-Type',
      stale: 'nothing in front of the service may keep its replies',
    }
    const hint = hints[failure.problem] ?? 'check BILLING_BASE_URL'
    super(failure, (request) => `unexpected reply to ${request}: ${failure.why}; ${hint}`)
    this.problem = failure.problem
    this.retryable = failure.problem === 'notJson' || failure.problem === 'stale'
  }
}
