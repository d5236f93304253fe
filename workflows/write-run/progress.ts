import type { ReportCounts } from '../../core/runs/counts.ts'
import type { Identity } from '../../core/runs/identity.ts'
import type { Pace } from '../run/throughput.ts'

/** What the run waits for a person to approve. */
export type WaitingFor = 'approval' | 'canary' | 'breaker'

/** Changes of a run that a person has to find out about. */
export interface Parked {
  counts?: ReportCounts
  /** The first parked rows, as of the last segment. */
  parkedRows?: number[]
}

/** Where a write run is, as the query `status` answers. */
export interface WriteProgress<Staged = unknown> extends Parked {
  phase:
    | 'checking'
    | 'staging'
    | 'reading the list'
    | 'waiting for approval'
    | 'canary'
    | 'sending'
    | 'looking'
    | 'paused'
    | 'stopping'
    | 'proving'
    | 'reporting'
    | 'ended'
  run?: string
  identity?: Identity
  limits: object
  staged?: Staged
  waitingFor?: { what: WaitingFor; /** Deletes: to be typed. */ count?: number; until: string }
  /** When an open breaker tries again. */
  breakerUntil?: string
  /** When the next lookup or the next attempt is due. */
  nextAt?: string
  /** Of the last segment, while changes are left to send. */
  pace?: Pace
  summary?: string
}
