import type { OpenBreaker } from '../../core/runs/view/breaker.ts'
import type { ReportCounts } from '../../core/runs/view/counts.ts'
import type { Identity } from '../../core/runs/identity.ts'
import type { Table } from '../../core/runs/view/view.ts'
import type { Throughput } from '../run/throughput.ts'

export interface StagedChanges {
  /** How many changes are to be sent. */
  open: number
  /** The rows that go first. */
  canary: readonly number[]
  /** What is staged, as Current Details show it. */
  tables: readonly Table[]
}

/** What a person is asked to approve. */
export type WaitingFor = 'approval' | 'canary' | 'breaker'

/** The progress of a write run, as the query `status` answers. */
export interface WriteProgress<Staged = StagedChanges> {
  phase:
    | 'checking'
    | 'staging'
    | 'reading the list'
    | 'waiting for approval'
    | 'canary'
    | 'sending'
    | 'looking up'
    | 'paused'
    | 'stopping'
    | 'proving'
    | 'reporting'
    | 'ended'
  run?: string
  counts?: ReportCounts
  /** The first parked rows, as of the last segment. */
  parkedRows?: number[]
  identity?: Identity
  limits: object
  staged?: Staged
  waitingFor?: {
    question: WaitingFor
    /** The number of deletes, to be confirmed. */ count?: number
    until: string
  }
  openBreakers?: readonly OpenBreaker[]
  /** When the next lookup or the next attempt is due. */
  nextAt?: string
  /** Of the last segment, while changes are left to send. */
  throughput?: Throughput
  summary?: string
}
