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
  /** The tokens expire with this request; `next` is valid from then on. */
  | { kind: 'expireToken'; next?: string }
  /** At most `cap` records per page; with `fixed`, always that many, whatever is requested. */
  | { kind: 'pageSize'; cap: number; fixed?: boolean }
  /** A gateway without a backend. */
  | { kind: 'notFound'; html?: boolean }
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
const faultKinds: readonly FaultKind['kind'][] = [
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
  'expireToken',
  'pageSize',
  'notFound',
  'fallBack',
  'refuse',
  'otherClient',
  'storeOtherwise',
]

/** The facts about a request that decide which faults apply. */
export interface FaultSubject {
  /** `GET /customers/`, `PATCH /contacts/{id}/`. */
  operation: string
  id: string
  body: unknown
}

/** The faults that apply to one request. */
export interface Struck {
  kinds: string[]
  /** The first fault of this kind. */
  find<K extends FaultKind['kind']>(kind: K): FaultOf<K> | undefined
  all<K extends FaultKind['kind']>(kind: K): FaultOf<K>[]
}

const toStruck = (faults: readonly Fault[]): Struck => ({
  kinds: faults.map(({ kind }) => kind),
  find: <K extends FaultKind['kind']>(kind: K) => faults.find((fault) => fault.kind === kind) as FaultOf<K>,
  all: <K extends FaultKind['kind']>(kind: K) =>
    faults.filter((fault) => fault.kind === kind) as FaultOf<K>[],
})

/** Decides which faults apply to a request; each fault has its own counter and random draws. */
export function createFaultPlan({ seed, nowMs }: { seed: number; nowMs: () => number }) {
  let armed: { fault: Fault; seen: number; setAt: number; chance: Chance }[] = []
  let count = 0

  function add(fault: Fault): void {
    // An unknown fault would never apply, and its test would prove nothing.
    if (!faultKinds.includes(fault.kind))
      throw new RangeError(`no such fault: ${fault.kind}; there are ${faultKinds.join(', ')}`)
    armed.push({ fault, seen: 0, setAt: nowMs(), chance: new Chance(seed, 5_000_000_029 + count++) })
  }

  function strikes(one: (typeof armed)[number], subject: FaultSubject): boolean {
    const { requests, from = 1, to = Infinity, forSeconds = Infinity, rate = 1 } = one.fault
    if (!selects(one.fault, subject)) return false
    one.seen++
    if (requests !== undefined && !requests.includes(one.seen)) return false
    if (one.seen < from || one.seen > to) return false
    return (nowMs() - one.setAt) / 1000 <= forSeconds && one.chance.happens(rate)
  }

  return {
    add,
    replace(faults: readonly Fault[]): void {
      armed = []
      for (const fault of faults) add(fault)
    },
    strike: (subject: FaultSubject): Struck =>
      toStruck(armed.filter((one) => strikes(one, subject)).map(({ fault }) => fault)),
  }
}

function selects({ on, ids, body }: Fault, subject: FaultSubject): boolean {
  if (on !== undefined && ![on].flat().includes(subject.operation)) return false
  if (ids !== undefined && !ids.includes(subject.id)) return false
  if (body === undefined) return true
  const sent = subject.body as Record<string, unknown> | null
  return Object.entries(body).every(
    ([field, value]) => JSON.stringify(sent?.[field]) === JSON.stringify(value),
  )
}

/**
 * A token bucket, initially full. The function takes a token and returns 0, or returns the seconds until there is one.
 */
export function createTokenBucket(limit: FaultOf<'throttle'>, nowMs: () => number): () => number {
  const { perSecond } = limit
  const size = limit.burst ?? Math.max(1, perSecond)
  let tokens = size
  let filledAt = nowMs()
  return () => {
    const now = nowMs()
    tokens = Math.min(size, tokens + ((now - filledAt) / 1000) * perSecond)
    filledAt = now
    if (tokens < 1) return (1 - tokens) / perSecond
    tokens -= 1
    return 0
  }
}

/** The header's value, rounded up to whole seconds: a token is available after that time. */
export function retryAfter(options: { seconds: number; form: 'seconds' | 'date'; nowMs: number }): string {
  if (options.form === 'seconds') return String(Math.ceil(options.seconds))
  return new Date(Math.ceil((options.nowMs + options.seconds * 1000) / 1000) * 1000).toUTCString()
}
