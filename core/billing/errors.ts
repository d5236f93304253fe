/**
 * Errors of a request. No error contains the token: causes are errors of the operating system, never request objects.
 */

/**
 * The possible effect in the service of a write that ended this way. `none`: the service has not acted, and the same write
 * may be sent again (never sent, or the service's own 401, 403 or 429). `refused`: the service itself rejected it.
 * `unknown`: it may have been done; look it up before sending again.
 */
export type Effect = 'none' | 'refused' | 'unknown'

export interface Failure {
  method: string
  path: string
  status?: number | undefined
  /** The service's messages; see error-body.ts. */
  messages?: readonly string[]
  cause?: unknown
}

interface Meaning {
  effect: Effect
  /** Whether the same read may succeed later. */
  retryable: boolean
  /** Words after "The service" for a run that waits; undefined where the service itself has answered, so it works. */
  trouble?: string | undefined
  /** `request`: the request with its status and messages, such as `GET /customers/ (404: Invalid page.)`. */
  toMessage: (request: string) => string
}

export abstract class BillingError extends Error {
  readonly method: string
  readonly path: string
  readonly status: number | undefined
  readonly messages: readonly string[]
  readonly effect: Effect
  readonly retryable: boolean
  readonly trouble: string | undefined
  /** The message without the service's own messages, which may repeat what was sent, and without ids from a file. */
  readonly withoutValues: string

  constructor(failure: Failure, { effect, retryable, trouble, toMessage }: Meaning) {
    const { method, path, status, messages = [], cause } = failure
    super(toMessage(describeRequest(failure)), cause === undefined ? undefined : { cause })
    this.name = new.target.name
    this.method = method
    this.path = path
    this.status = status
    this.messages = messages
    this.effect = effect
    this.retryable = retryable
    this.trouble = trouble
    const hidden = path.replace(/^(\/[^/]+\/)[^/]+/, '$1...')
    this.withoutValues = toMessage(describeRequest({ ...failure, path: hidden, messages: [] }))
  }
}

function describeRequest({ method, path, status, messages = [] }: Failure): string {
  const text = messages.join('; ')
  // The title of a gateway's page begins with the status.
  const details = [...(status === undefined || text.startsWith(`${status} `) ? [] : [status]), text]
  const inBrackets = details.filter((detail) => detail !== '').join(': ')
  return inBrackets === '' ? `${method} ${path}` : `${method} ${path} (${inBrackets})`
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

  constructor(failure: Answered, meaning: Omit<Meaning, 'toMessage'> & { summary: string; hint: string }) {
    const { byService, status } = failure
    const { summary, hint, effect, trouble } = meaning
    const advice = byService
      ? hint
      : 'the reply does not have the service’s format: a gateway sent it, or BILLING_BASE_URL is wrong'
    super(failure, {
      effect: byService ? effect : 'unknown',
      retryable: meaning.retryable,
      trouble: trouble ?? (byService ? undefined : `answers ${status} with a page that is not its own`),
      toMessage: (request) => `${summary}: ${request}; ${advice}`,
    })
    this.byService = byService
    this.ageMs = failure.ageMs
  }
}

/** 401, also after the token was read again. A write may be sent again if that returned a new token. */
export class Unauthorized extends AnsweredError {
  constructor(failure: Answered, { renewed = false } = {}) {
    const summary = 'the service does not accept the token'
    const hint = 'set a valid one, and restart a worker that has the old one in its environment'
    super(failure, { effect: 'none', retryable: renewed, summary, hint, trouble: 'refuses the token' })
  }

  /** The same error, when there is a new token. */
  renewed(): Unauthorized {
    return new Unauthorized(this, { renewed: true })
  }
}

/** 403: the token is known, but lacks permission for this in this workspace. */
export class Forbidden extends AnsweredError {
  constructor(failure: Answered) {
    const hint = 'check the workspace and the permissions of the token'
    super(failure, { effect: 'none', retryable: false, summary: 'not allowed', hint })
  }
}

/** 404. One from a gateway counts as a 502. */
export class NotFound extends AnsweredError {
  constructor(failure: Answered) {
    // A create does not refer to a record, so the service would not answer 404; something else has.
    const isCreate = failure.method === 'POST' && /^\/[^/]+\/$/.test(failure.path)
    const effect = isCreate ? 'unknown' : 'refused'
    const hint = 'check the id or the page'
    super(failure, { effect, retryable: !failure.byService, summary: 'not found', hint })
  }
}

/** 400, 409, 422: the service rejected the request; the reasons are in `messages`. One from a gateway counts as a 502. */
export class Refused extends AnsweredError {
  constructor(failure: Answered) {
    const hint = 'change what was sent'
    super(failure, { effect: 'refused', retryable: !failure.byService, summary: 'refused', hint })
  }
}

/** 429: too many requests. All requests pause if the service named a time. */
export class RateLimited extends AnsweredError {
  constructor(failure: Answered) {
    const hint = 'lower BILLING_REQUESTS_PER_SECOND if this persists'
    const trouble = `answers ${failure.status}`
    super(failure, { effect: 'none', retryable: true, summary: 'too many requests', hint, trouble })
  }
}

/** 429 or 5xx with a longer Retry-After than this client may wait: a person waits for it. */
export class PauseAsked extends BillingError {
  constructor(failure: Failure & { pauseMs: number }) {
    const until = new Date(Date.now() + failure.pauseMs).toISOString().slice(0, 16).replace('T', ' ')
    super(failure, {
      effect: 'unknown',
      retryable: false,
      toMessage: (request) => `the service asks for a pause until ${until} UTC: ${request}; try again then`,
    })
  }
}

/** 5xx: the service or a gateway in front of it failed. 408: it waited too long for the rest of a request. */
export class ServiceFault extends BillingError {
  constructor(failure: Failure) {
    super(failure, {
      effect: 'unknown',
      retryable: true,
      trouble: `answers ${failure.status}`,
      toMessage: (request) => `the service failed: ${request}; it may recover`,
    })
  }
}

/** No connection was established (refused, DNS, TLS, proxy, timeout), so nothing was sent. */
export class Unreachable extends BillingError {
  constructor(failure: Failure & { why: string }) {
    super(failure, {
      effect: 'none',
      retryable: true,
      trouble: `can't be reached${codeOf(failure)}`,
      toMessage: (request) =>
        `no connection for ${request}: ${failure.why}; check the address and the network`,
    })
  }
}

/** A claimed write was not sent within `sendWithinMs` and never will be. */
export class SentTooLate extends BillingError {
  constructor(failure: Failure & { ms: number }) {
    const why = `claiming it took ${Math.round(failure.ms)} ms; the process was suspended, or its disk is slow`
    const toMessage = (request: string) => `${request} was not sent: ${why}`
    super(failure, { effect: 'none', retryable: true, toMessage })
  }
}

/** The request may have left, but no complete reply came: reset, timeout, cut off. */
export class LostReply extends BillingError {
  constructor(failure: Failure & { why: string }) {
    super(failure, {
      effect: 'unknown',
      retryable: true,
      trouble: `gives no complete answer${codeOf(failure)}`,
      toMessage: (request) =>
        `no complete reply to ${request}: ${failure.why}; ` +
        (failure.method === 'GET' ? 'check the address and the network' : 'it may or may not have been done'),
    })
  }
}

type Problem = 'redirect' | 'notJson' | 'notText' | 'notTheShape' | 'tooLarge' | 'status' | 'stale'

/** What to do about it, if it is not the address. */
const hints: Partial<Record<Problem, string>> = {
  notText: 'the service must send UTF-8',
  stale: 'nothing in front of the service may keep its replies',
}

/** A complete reply that does not match the API; `problem` says how. */
export class UnexpectedReply extends BillingError {
  readonly problem: Problem
  constructor(failure: Failure & { problem: Problem; why: string }) {
    const { problem, why, status } = failure
    const troubles: Partial<Record<Problem, string>> = {
      notJson: `answers ${status} with a page that is not JSON`,
      stale: 'answers through a cache with old replies',
    }
    super(failure, {
      effect: 'unknown',
      // Both may come from something in front of the service and be temporary.
      retryable: problem in troubles,
      trouble: troubles[problem],
      toMessage: (request) =>
        `unexpected reply to ${request}: ${why}; ${hints[problem] ?? 'check BILLING_BASE_URL'}`,
    })
    this.problem = problem
  }
}

/** For example ` (ECONNREFUSED)` or ` (CERT_HAS_EXPIRED)`. */
function codeOf({ cause }: Failure): string {
  if (!(cause instanceof Error)) return ''
  const text = 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.message
  const [, code] = /^([A-Z][A-Z0-9_]{1,60})(?::|$)/.exec(text) ?? []
  return code === undefined ? '' : ` (${code})`
}
