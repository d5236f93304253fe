import { changeRunFiles, type ChangeRun } from '../runs/run-files.ts'
import { toInstant } from '../reading/instant.ts'
import type { Reason } from './reasons.ts'

/** The limits of a recovery that people may change while it runs. */
export interface RecoveryLimits {
  requestsPerSecond?: number
  /** The most resumes in flight. */
  concurrency?: number
  /** The most subscriptions to resume. */
  maxChanges?: number
  maxFailureShare?: number
}

/**
 * The plan of a recovery, fixed at its start. Holds only names, counts and times, because it is part of the
 * workflow's history; lists of customers stay in the run's folder.
 */
export interface RecoveryPlan extends ChangeRun {
  /** The execution that made the plan: the workflow id, and the first run id of its chain. */
  execution: { workflowId: string; runId: string }
  startedAt: string
  /** The reasons to resume. Other reasons are only reported, or omitted if the input named the reasons. */
  reasons: Reason[]
  /** Whether the input named the reasons. */
  named: boolean
  maxPages: number
  dryRun: boolean
  /** A dry run notifies people if more than this many need attention. */
  notifyAbove?: number
  /** Whether nothing is resumed before a person approves. */
  approval: boolean
  /** A person is present: a breaker that has given up waits for them instead of ending the run. */
  attended: boolean
  /** How long the run waits for a person. */
  approvalMs: number
  /** The number of subscriptions per reason that are resumed first, as a canary. */
  canary: number
  /** Sent with each resume; if absent, the field is omitted. */
  nextBilling?: string
  /** The most resume requests that may have taken effect for one subscription in the same incident, across all runs. */
  attempts: number
  /** The wait after the first attempt; doubles with each further attempt, up to `longestWaitMs`. */
  firstWaitMs: number
  longestWaitMs: number
  coolDownMs: number
  olderThanMs?: number
  verifyMs: number
  settleMs: number
  breakerWaitsMs?: number[]
  limits: RecoveryLimits
  /** The number of history events after which the workflow continues as a new execution. */
  eventsPerExecution: number
}

/** The files in a recovery's folder. */
export const recoveryFiles = {
  ...changeRunFiles,
  /** What was read of the list, one line per step. */
  journal: 'snapshot.jsonl',
  /** The counts of the finished snapshot. */
  snapshot: 'snapshot.json',
  results: 'recovery.csv',
} as const

/** Whether a subscription that has needed attention since `since` meets the plan's `olderThanMs`. */
export function isLongEnough(since: string, { startedAt, olderThanMs }: RecoveryPlan): boolean {
  if (olderThanMs === undefined) return true
  const microseconds = toInstant(since)
  return microseconds !== undefined && microseconds / 1000 <= Date.parse(startedAt) - olderThanMs
}

/** The waits after the first, second, ... attempt, in ms. */
export function waitsOf({ attempts, firstWaitMs, longestWaitMs }: RecoveryPlan): number[] {
  return Array.from({ length: attempts }, (_, index) => Math.min(firstWaitMs * 2 ** index, longestWaitMs))
}

/** The lease that allows only one recovery at a time in a workspace and mode, however it was started. */
export const leaseOf = ({ identity: { workspace, mode } }: RecoveryPlan) => `recovery of ${workspace} ${mode}`

/** The leases that a recovery takes. A dry run resumes nothing and takes none. */
export const leasesOf = (plan: RecoveryPlan): string[] => (plan.dryRun ? [] : [leaseOf(plan)])
