import type { RunRef } from '../../core/runs/known-run.ts'
import type { ReportCounts } from '../../core/runs/view/counts.ts'
import type { RunControl } from '../run/control.ts'
import type { Notifier } from '../run/notify.ts'
import type { WaitingFor, WriteProgress } from './progress.ts'

/** What every report of a write run has. */
export interface WriteResult {
  verdict: string
  summary: string
  counts: ReportCounts
  rows: Partial<Record<keyof ReportCounts, unknown[]>>
  files: object
}

/** What the operator interface shares with the run it serves. */
export interface OperatorState {
  /** Set once the run is open: updates that arrive before wait for it. */
  plan: RunRef | undefined
  result: WriteResult | undefined
  /** How often rows of the run were resolved, so that there may be something to send again. */
  resolved: number
  /** Waits for `approve`. False if nobody answered in time, or the run was stopped. */
  ask(asked: { question: WaitingFor; count?: number; seconds: number }): Promise<boolean>
  /**
   * Waits for the updates in progress and refuses further ones: the report would not have them, and the run's end
   * would cut them off. Stays open and gives false if `resolved` is no longer `seen`.
   */
  close(seen?: number): Promise<boolean>
}

export interface OperatorText {
  /** An example of every limit that can be set. */
  limits: Readonly<Record<string, number>>
  report: string
}

export interface Parties {
  progress: WriteProgress
  show: () => void
  control: RunControl
  notifier: Notifier
  text: OperatorText
}
