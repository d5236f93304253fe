import { changeRunFiles, type ChangeRun } from '../runs/run-files.ts'
import type { z } from 'zod'
import { toMs } from '../runs/duration.ts'
import type { Execution } from '../runs/name.ts'
import { toInstant } from '../billing/instants.ts'
import type { RecoveryLimits, recoverySettings } from './input.ts'
import type { Reason } from './reasons.ts'

/**
 * The plan of a recovery, fixed at its start. Holds only names, counts and times, because it is part of the
 * workflow's history; lists of customers stay in the run's folder. What the input decides has the same names here.
 */
export interface RecoveryPlan extends ChangeRun, z.output<typeof recoverySettings> {
  /** The execution that made the plan: the workflow id, and the first run id of its chain. */
  execution: Execution
  startedAt: string
  /** The reasons to resume. Other reasons are only reported, or omitted if the input named the reasons. */
  reasons: Reason[]
  /** Whether the input named the reasons. */
  named: boolean
  attended: boolean
  verifyAfter: number
  /** How long a request without an answer may still take effect. */
  settleMs: number
  limits: RecoveryLimits
}

/** The files in a recovery's folder. */
export const recoveryFiles = {
  ...changeRunFiles,
  /** What was read of the list, one line per step. */
  journal: 'snapshot.jsonl',
  /** The counts of the finished snapshot. */
  snapshot: 'snapshot.json',
  /** Of a dry run: the rows of recovery.csv, as its snapshot decided them. */
  decided: 'decided.json',
  results: 'recovery.csv',
} as const

/** Whether a subscription that has needed attention since `since` meets the plan's `olderThan`. */
export function isLongEnough(since: string, { startedAt, olderThan }: RecoveryPlan): boolean {
  if (olderThan === undefined) return true
  const microseconds = toInstant(since)
  return microseconds !== undefined && microseconds / 1000 <= Date.parse(startedAt) - toMs(olderThan)
}

/** The waits after the first, second, ... attempt, in ms. */
export const waitsOf = ({ attempts, firstWait, longestWait }: RecoveryPlan): number[] =>
  Array.from({ length: attempts }, (_, index) => toMs(Math.min(firstWait * 2 ** index, longestWait)))

/** The lease that allows only one recovery at a time in a workspace and mode, however it was started. */
export const leaseOf = ({ identity: { workspace, mode } }: RecoveryPlan) => `recovery of ${workspace} ${mode}`

/** The leases that a recovery takes. A dry run resumes nothing and takes none. */
export const leasesOf = (plan: RecoveryPlan): string[] => (plan.dryRun ? [] : [leaseOf(plan)])
