import type { Lag } from './store/replica.ts'

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
