import type { ImportLimits, ImportPlan } from '../../core/imports/input.ts'
import type { StagedNote } from '../../core/imports/run-files.ts'
import type { RecoveryLimits } from '../../core/recoveries/input.ts'
import type { SnapshotNote } from '../../core/recoveries/open.ts'
import type { OpenBreaker } from '../../core/runs/view/trouble.ts'
import type { ReportCounts } from '../../core/runs/view/counts.ts'
import type { Identity } from '../../core/runs/identity.ts'
import type { Table } from '../../core/runs/view/view.ts'
import type { ShownTrouble } from '../run/troubles.ts'
import type { Throughput } from '../run/throughput.ts'

export interface StagedChanges {
  /** The number of changes to send. */
  open: number
  /** The number of changes that may have been sent before, and how many of them are of the canary. */
  sent: number
  again: number
  /** The rows that are sent first. */
  canary: readonly number[]
  /** The staged changes, as shown in Current Details. */
  tables: readonly Table[]
}

/** The questions that a person may be asked. */
export type WaitingFor = 'approval' | 'canary' | 'breaker'

/** The progress of a write run, as returned by the query `status`. */
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
  /** The first parked rows that a person may resolve, as of the last segment. */
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
  /** What holds up its step. */
  troubles?: ShownTrouble[]
  /** When the next lookup or attempt is due (ISO 8601). */
  nextAt?: string
  /** The throughput of the last segment, while changes are left to send. */
  throughput?: Throughput
  summary?: string
}

export type StagedImport = StagedNote & StagedChanges

export interface ImportProgress extends WriteProgress<StagedImport> {
  kind?: ImportPlan['kind']
  file?: string
  limits: ImportLimits
}

export type StagedRecovery = SnapshotNote & StagedChanges

export interface RecoveryProgress extends WriteProgress<StagedRecovery> {
  limits: RecoveryLimits
  /** Reasons whose canary failed: their other subscriptions are not tried. */
  failedCanaries: readonly string[]
}
