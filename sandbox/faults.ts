import type { Lag } from './store/replica.ts'

/**
 * When a fault strikes. With nothing given: every request. Requests are counted from 1 among those that the fault's
 * `on`, `ids` and `body` select, from the moment the fault is set.
 */
export interface FaultWhen {
  /** Operations such as `GET /customers/` or `POST /subscriptions/{id}/resume/`. */
  on?: string | readonly string[]
  /** Only requests whose path names one of these. */
  ids?: readonly string[]
  /** Only requests whose body has these values in these fields. */
  body?: Readonly<Record<string, unknown>>
  /** The share of requests, drawn by the seed. */
  rate?: number
  /** Exactly these requests. */
  requests?: readonly number[]
  /** From this request on. */
  from?: number
  /** Up to and including this request. */
  to?: number
  /** Only so long after the fault was set. */
  forSeconds?: number
}

/** Whether the write is done although the answer does not say so. */
interface Effect {
  effect?: 'none' | 'done'
}

/** What goes wrong. Everything can be said in JSON, so that a fault can be set from another process. */
export type FaultKind =
  /** Waits before the effect (default) or between effect and answer; the effect happens even if the client is gone. */
  | { kind: 'latency'; ms: number; jitterMs?: number; where?: 'before' | 'after' }
  /** 429 from a token bucket, full at first; `burst` is its size (default: one second's worth). */
  | { kind: 'throttle'; perSecond: number; burst?: number; retryAfter?: 'seconds' | 'date' | 'none' }
  /** 500 as Django answers it, or another status; `html` for a gateway's page. */
  | ({ kind: 'error'; status?: number; html?: boolean } & Effect)
  /** The connection is torn down. */
  | ({ kind: 'reset' } & Effect)
  /** The reply is lost, and the effect lands this much later. */
  | { kind: 'lateEffect'; seconds: number; reply?: 'reset' | 'error' }
  /** Only the first share of the body arrives (default half): cut off, or, as `whole`, with a length that fits. */
  | { kind: 'cutBody'; keep?: number; framing?: 'broken' | 'whole' }
  /** In so many records of a page (default 1) the field holds this value. */
  | { kind: 'wrongType'; field: string; value: unknown; records?: number }
  | { kind: 'ignoreOrdering' }
  /** All filters, or those named, are ignored in silence. */
  | { kind: 'ignoreFilters'; filters?: readonly string[] }
  /** The rows of the page before are served again. */
  | { kind: 'repeatPage' }
  /** So many records are taken out after the page was cut. */
  | { kind: 'shortWindow'; drop: number }
  /** Records of these statuses are shown only under their status filter. */
  | { kind: 'hide'; statuses: readonly string[] }
  | { kind: 'redirect'; location: string }
  /** The tokens end with this request; `next` is valid from then on. */
  | { kind: 'expireToken'; next?: string }
  /** At most `cap` records a page; as `fixed`, always that many, whatever is asked. */
  | { kind: 'pageSize'; cap: number; fixed?: boolean }
  /** `count` and `next` come from an older state than the rows, and Django cuts the rows at `count`. */
  | { kind: 'staleCount'; lag: Lag }
  /** The read is served by a replica that is behind. */
  | { kind: 'replica'; lag: Lag }
  /** A gateway without a backend. */
  | { kind: 'notFound'; html?: boolean }
  /** `next` and `previous` name another host. */
  | { kind: 'foreignLinks'; base: string }
  /** A resume ends in `needs_attention` again, with the same reason or another one, at once or later. */
  | { kind: 'fallBack'; reason?: string; afterSeconds?: number }
  /** The request is refused with these words. */
  | { kind: 'refuse'; answer: unknown; status?: number }
  /** Another client creates a retention with the body's supplier, document and number, or with other fields. */
  | { kind: 'otherClient'; fields?: Readonly<Record<string, unknown>>; when?: 'before' | 'after' }
  /** The service stores other values than were sent. */
  | { kind: 'storeOtherwise'; fields: Readonly<Record<string, unknown>> }

export type Fault = FaultWhen & FaultKind

export type FaultOf<K extends FaultKind['kind']> = Extract<FaultKind, { kind: K }>

/** All of them, to tell a mistyped one. */
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
