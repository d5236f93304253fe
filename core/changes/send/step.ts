import type { ReportCounts } from '../../runs/view/counts.ts'
import type { OpenBreaker } from '../../runs/view/trouble.ts'
import type { BreakerStates } from './breaker.ts'

/** Why a segment ended. */
export type SendEnd =
  /** Nothing is left to send or to look up. */
  | 'finished'
  /** The remaining changes are due later. */
  | 'waiting'
  | 'timeUp'
  | 'stopped'
  /** The breakers of the remaining changes are open. */
  | 'breaker'
  | 'maxChanges'
  | 'maxFailures'

/** Input of one sending segment, from the workflow. */
export interface SendInput {
  /** How long to send before reporting back to the workflow. */
  seconds: number
  /** As the last segment of this run returned them; `{}` at the start. */
  breakers: BreakerStates
  /** The number of claims of the run as last reported to the workflow. */
  claims: number
  /** Only the canary. */
  canary?: boolean | undefined
  /** Only these rows. */
  rows?: readonly number[] | undefined
  /** Sends nothing more and only looks up what was sent. */
  lookupsOnly?: boolean | undefined
}

/** Result of one sending segment: counts, row numbers and times only. */
export interface SendStep {
  ended: SendEnd
  /** When the next change is due, by the ledger's clock; undefined if it takes a person or a new segment. */
  nextAt?: number
  /** When the segment ended, by the same clock: Temporal's may differ. */
  endedAt: number
  /** Keys of breakers that have given up: only a person closes them. */
  givenUp: string[]
  breakers: BreakerStates
  openBreakers: OpenBreaker[]
  claims: number
  counts: ReportCounts
  /** The first parked rows whose outcome a person may decide; absent if none is parked. */
  parkedRows?: number[]
  /** Set after a canary: the rows that were sent, and the breaker keys whose rows all failed. */
  canary?: { rows: number[]; failed: string[] }
}
