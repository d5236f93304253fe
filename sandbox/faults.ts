import { Chance } from './data/random.ts'

/**
 * When a fault applies; default: to every request. Requests are counted from 1 among those selected by the
 * fault's `on`, `ids` and `body`, from the moment the fault is set.
 */
export interface FaultWhen {
  /** Operations such as `GET /customers/` or `POST /subscriptions/{id}/resume/`. */
  on?: string | readonly string[]
  /** Only requests whose path contains one of these ids. */
  ids?: readonly string[]
  /** Only requests whose body has these values in these fields. */
  body?: Readonly<Record<string, unknown>>
  /** The share of requests, drawn with the seed. */
  rate?: number
  /** Exactly these requests. */
  requests?: readonly number[]
  /** From this request on. */
  from?: number
  /** Up to and including this request. */
  to?: number
  /** Only for this long after the fault was set. */
  forSeconds?: number
}

/** Whether the write is done although the response does not say so. */
interface Effect {
  effect?: 'none' | 'done'
}

/** How far a replica lags: seconds, or a number of changes (independent of the clock). */
export interface Lag {
  seconds?: number
  changes?: number
}

/** The kinds of faults. All are plain JSON, so that another process can set them. */
export type FaultKind =
  /**
   * Waits before the effect (default) or between effect and response; the effect happens even if the client
   * has disconnected.
   */
  | { kind: 'latency'; ms: number; jitterMs?: number; where?: 'before' | 'after' }
  /** 429 from a token bucket, initially full; `burst` is its size (default: the tokens of one second). */
  | { kind: 'throttle'; perSecond: number; burst?: number; retryAfter?: 'seconds' | 'date' | 'none' }
  /** 500 as Django returns it, or another status; `html` for a gateway's page. */
  | ({ kind: 'error'; status?: number; html?: boolean } & Effect)
  /** The connection is reset. */
  | ({ kind: 'reset' } & Effect)
  /** The response is lost, and the effect happens this much later. */
  | { kind: 'lateEffect'; seconds: number; reply?: 'reset' | 'error' }
  /**
   * Only the first part of the body arrives (default half): cut off, or, as `whole`, with a matching length.
   */
  | { kind: 'cutBody'; keep?: number; framing?: 'broken' | 'whole' }
  /** In this many records of a page (default 1) the field has this value. */
  | { kind: 'wrongType'; field: string; value: unknown; records?: number }
  | { kind: 'ignoreOrdering' }
  /** All filters, or the named ones, are silently ignored. */
  | { kind: 'ignoreFilters'; filters?: readonly string[] }
  /** The rows of the previous page are served again. */
  | { kind: 'repeatPage' }
  /** Drops this many records after the page was cut. */
  | { kind: 'shortWindow'; drop: number }
  /** Records with these statuses are shown only if filtered by that status. */
  | { kind: 'hide'; statuses: readonly string[] }
  | { kind: 'redirect'; location: string }
  /** The tokens expire with this request; `next` is valid from then on. */
  | { kind: 'expireToken'; next?: string }
  /** At most `cap` records per page; with `fixed`, always that many, whatever is requested. */
  | { kind: 'pageSize'; cap: number; fixed?: boolean }
  /** `count` and `next` come from an older state than the rows, and Django cuts the rows at `count`. */
  | { kind: 'staleCount'; lag: Lag }
  /** The read is served by a replica that lags. */
  | { kind: 'replica'; lag: Lag }
  /** A gateway without a backend. */
  | { kind: 'notFound'; html?: boolean }
  /** `next` and `previous` point to another host. */
  | { kind: 'foreignLinks'; base: string }
  /** A resume ends in `needs_attention` again, for the same or another reason, immediately or later. */
  | { kind: 'fallBack'; reason?: string; afterSeconds?: number }
  /** The request is rejected with this response. */
  | { kind: 'refuse'; answer: unknown; status?: number }
  /**
   * Another client creates a retention with the body's supplier, document and number, or with other fields.
   */
  | { kind: 'otherClient'; fields?: Readonly<Record<string, unknown>>; when?: 'before' | 'after' }
  /** The service stores values other than those sent. */
  | { kind: 'storeOtherwise'; fields: Readonly<Record<string, unknown>> }

export type Fault = FaultWhen & FaultKind

export type FaultOf<K extends FaultKind['kind']> = Extract<FaultKind, { kind: K }>

/** All kinds, to detect a mistyped one. */
export const faultKinds: readonly FaultKind['kind'][] = [
  'latency',
  'throttle',
  'error',
  'reset',
  'lateEffect',
  'cutBody',
  'wrongType',
  'ignoreOrdering',
  'ignoreFilters',
  'repeatPage',
  'shortWindow',
  'hide',
  'redirect',
  'expireToken',
  'pageSize',
  'staleCount',
  'replica',
  'notFound',
  'foreignLinks',
  'fallBack',
  'refuse',
  'otherClient',
  'storeOtherwise',
]

/** The facts about a request that a plan needs. */
export interface FaultSubject {
  /** `GET /customers/`, `PATCH /contacts/{id}/`. */
  operation: string
  id: string | undefined
  body: unknown
}

interface Armed {
  fault: Fault
  seen: number
  setAt: number
  chance: Chance
}

/** The faults that apply to one request. */
export class Struck {
  readonly #faults: readonly Fault[]

  constructor(faults: readonly Fault[]) {
    this.#faults = faults
  }

  get kinds(): string[] {
    return this.#faults.map((fault) => fault.kind)
  }

  /** The first fault of this kind. */
  find<K extends FaultKind['kind']>(kind: K): FaultOf<K> | undefined {
    return this.#faults.find((fault) => fault.kind === kind) as FaultOf<K> | undefined
  }

  all<K extends FaultKind['kind']>(kind: K): FaultOf<K>[] {
    return this.#faults.filter((fault) => fault.kind === kind) as FaultOf<K>[]
  }
}

const nothing = new Struck([])

/** Decides which faults apply to a request; each fault has its own counter and random draws. */
export class FaultPlan {
  readonly #seed: number
  readonly #nowMs: () => number
  #armed: Armed[] = []
  #set = 0

  constructor(options: { seed: number; nowMs: () => number }) {
    this.#seed = options.seed
    this.#nowMs = options.nowMs
  }

  replace(faults: readonly Fault[]): void {
    this.#armed = []
    for (const fault of faults) this.add(fault)
  }

  add(fault: Fault): void {
    const chance = new Chance(this.#seed, 5_000_000_029 + this.#set++)
    this.#armed.push({ fault, seen: 0, setAt: this.#nowMs(), chance })
  }

  current(): Fault[] {
    return this.#armed.map(({ fault }) => fault)
  }

  strike(subject: FaultSubject): Struck {
    if (this.#armed.length === 0) return nothing
    return new Struck(this.#armed.filter((armed) => this.#strikes(armed, subject)).map(({ fault }) => fault))
  }

  #strikes(armed: Armed, subject: FaultSubject): boolean {
    const { fault } = armed
    if (!selects(fault, subject)) return false
    armed.seen++
    if (fault.requests !== undefined && !fault.requests.includes(armed.seen)) return false
    if (armed.seen < (fault.from ?? 1) || armed.seen > (fault.to ?? Infinity)) return false
    const age = (this.#nowMs() - armed.setAt) / 1000
    if (age > (fault.forSeconds ?? Infinity)) return false
    return armed.chance.happens(fault.rate ?? 1)
  }
}

function selects(fault: Fault, subject: FaultSubject): boolean {
  const { on, ids, body } = fault
  if (
    on !== undefined &&
    !(typeof on === 'string' ? on === subject.operation : on.includes(subject.operation))
  )
    return false
  if (ids !== undefined && (subject.id === undefined || !ids.includes(subject.id))) return false
  if (body === undefined) return true
  const sent = subject.body
  if (typeof sent !== 'object' || sent === null) return false
  return Object.entries(body).every(
    ([field, value]) => JSON.stringify((sent as Record<string, unknown>)[field]) === JSON.stringify(value),
  )
}

/** A token bucket, initially full. */
export class TokenBucket {
  readonly #perSecond: number
  readonly #size: number
  readonly #nowMs: () => number
  #tokens: number
  #filledAt: number

  constructor(options: { limit: FaultOf<'throttle'>; nowMs: () => number }) {
    this.#perSecond = options.limit.perSecond
    this.#size = options.limit.burst ?? Math.max(1, options.limit.perSecond)
    this.#nowMs = options.nowMs
    this.#tokens = this.#size
    this.#filledAt = this.#nowMs()
  }

  /** Takes a token and returns 0, or returns the seconds until there is one. */
  take(): number {
    const now = this.#nowMs()
    this.#tokens = Math.min(this.#size, this.#tokens + ((now - this.#filledAt) / 1000) * this.#perSecond)
    this.#filledAt = now
    if (this.#tokens < 1) return (1 - this.#tokens) / this.#perSecond
    this.#tokens -= 1
    return 0
  }
}

/** The header's value, rounded up to whole seconds: a token is available after that time. */
export function retryAfter(options: { seconds: number; form: 'seconds' | 'date'; nowMs: number }): string {
  if (options.form === 'seconds') return String(Math.ceil(options.seconds))
  return new Date(Math.ceil((options.nowMs + options.seconds * 1000) / 1000) * 1000).toUTCString()
}
