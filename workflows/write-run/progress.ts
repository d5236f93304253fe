import type { ReportCounts } from '../../core/runs/counts.ts'

/** What the run waits for a person to say. */
export type WaitingFor = 'approval' | 'canary' | 'breaker'

/** What of a run of changes its desk shows and changes. */
export interface DeskProgress extends Parked {
  run?: string
  phase: string
  limits: object
  waitingFor?: { what: WaitingFor; /** Deletes: to be typed. */ count?: number; until: string }
}

/** What of a run waits for a person to find out. */
export interface Parked {
  counts?: ReportCounts
  /** The first rows that are parked, as the sending last told. */
  parkedRows?: number[]
}
