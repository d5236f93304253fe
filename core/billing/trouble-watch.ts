import {
  type BillingError,
  Forbidden,
  LostReply,
  NotFound,
  RateLimited,
  Refused,
  ServiceFault,
  Unauthorized,
  Unreachable,
  UnexpectedReply,
} from './errors.ts'

/** A pause that the service asked for; ms since 1970. */
export interface Pause {
  since: number
  asked: number
  until: number
}

/** As in core/runs/view/trouble.ts. */
export interface Trouble {
  what: string
  since: number
  failures: number
  pause?: { asked: number; until: number }
}

/** Remembers why the requests of one step fail or wait: an outage that nobody is told of looks like a slow run. */
export class TroubleWatch {
  #failing: Trouble | undefined
  #queued = 0
  #pause: () => Pause | undefined = () => undefined

  /** `before`: the trouble of the step's last attempt. */
  constructor(before?: Trouble) {
    this.#failing = before && { what: before.what, since: before.since, failures: before.failures }
  }

  /** Where requests queue. */
  follow(pause: () => Pause | undefined): void {
    this.#pause = pause
  }

  /** A request waits for its turn until the promise resolves. */
  async queue<T>(turn: Promise<T>): Promise<T> {
    this.#queued += 1
    return await turn.finally(() => (this.#queued -= 1))
  }

  answered(): void {
    this.#failing = undefined
  }

  failed(error: BillingError): void {
    const what = whatOf(error)
    if (what === undefined) return this.answered()
    const { since = Date.now(), failures = 0 } = this.#failing ?? {}
    this.#failing = { what, since, failures: failures + 1 }
  }

  get trouble(): Trouble | undefined {
    const pause = this.#queued > 0 || this.#failing !== undefined ? this.#pause() : undefined
    if (pause === undefined) return this.#failing
    const { since, asked, until } = pause
    return { what: 'asks for a pause', since, failures: 0, ...this.#failing, pause: { asked, until } }
  }
}

/** Undefined where the service itself has answered: it works. */
function whatOf(error: BillingError): string | undefined {
  if (error instanceof Unauthorized) return 'refuses the token'
  if (error instanceof ServiceFault || error instanceof RateLimited) return `answers ${error.status}`
  if (error instanceof Unreachable) return `can't be reached${codeOf(error)}`
  if (error instanceof LostReply) return `gives no complete answer${codeOf(error)}`
  if (error instanceof UnexpectedReply && error.problem === 'stale')
    return 'answers through a cache with old replies'
  if (error instanceof UnexpectedReply)
    return error.problem === 'notJson' ? `answers ${error.status} with a page that is not JSON` : undefined
  const isByGateway =
    (error instanceof NotFound || error instanceof Refused || error instanceof Forbidden) && !error.byService
  return isByGateway ? `answers ${error.status} with a page that is not its own` : undefined
}

/** For example ` (ECONNREFUSED)` or ` (CERT_HAS_EXPIRED)`. */
function codeOf({ cause }: BillingError): string {
  if (!(cause instanceof Error)) return ''
  const text = 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.message
  const [, code] = /^([A-Z][A-Z0-9_]{1,60})(?::|$)/.exec(text) ?? []
  return code === undefined ? '' : ` (${code})`
}
