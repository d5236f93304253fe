import type { RunRef } from '../../core/runs/known-run.ts'
import type { ReportCounts } from '../../core/runs/view/counts.ts'
import type { RunControl } from '../run/control.ts'
import type { Notifier } from '../run/notify.ts'
import type { WaitingFor, WriteProgress } from './progress.ts'

/** The fields that every report of a write run has. */
export interface WriteResult {
  verdict: string
  summary: string
  /** Whether it is not proven for more than what people have decided. */
  inDoubt: boolean
  counts: ReportCounts
  rows: Partial<Record<keyof ReportCounts, unknown[]>>
  files: object
}

/** The state that the operator interface shares with its run. */
export interface OperatorState {
  /** Set once the run is open; earlier updates wait for it. */
  plan: (RunRef & { limits: object }) | undefined
  result: WriteResult | undefined
  /** The number of times that rows were resolved, each of which may leave something to send again. */
  resolved: number
  /** The rows that were resolved as absent. */
  absent: Set<number>
  /** Waits for `approve`. False if nobody answered in time or the run was stopped. */
  ask(asked: { question: WaitingFor; count?: number; seconds: number }): Promise<boolean>
  /**
   * Waits for the updates in progress and refuses new ones: they would be missing from the report and cut off by
   * the run's end. Stays open and returns false if `resolved` has changed from `seen`.
   */
  close(seen?: number): Promise<boolean>
}

export interface OperatorText {
  /** An example of each limit that can be set. */
  limits: Readonly<Record<string, number>>
  /** Limits of the plan that can only be lowered: what is beyond them was left out when the run was staged. */
  lowerOnly?: readonly string[]
  report: string
}

export interface OperatorContext {
  progress: WriteProgress
  show: () => void
  control: RunControl
  notifier: Notifier
  text: OperatorText
}
