import { changeRunFiles, type ChangeRun } from '../runs/run-files.ts'
import { toInstant } from '../reading/instant.ts'
import type { Reason } from './reasons.ts'

/** The bounds of a recovery that people may change while it runs. */
export interface RecoveryLimits {
  requestsPerSecond?: number
  /** Resumes on their way at once. */
  concurrency?: number
  /** The most subscriptions that are resumed. */
  maxChanges?: number
  maxFailureShare?: number
}

/**
 * The plan of a recovery, fixed at its start: names, counts and times only, because it is part of the workflow's
 * history. Lists of customers stay in the run's folder.
 */
export interface RecoveryPlan extends ChangeRun {
  /** The execution that settled it: the workflow id, and the first run id of its chain. */
  execution: { workflowId: string; runId: string }
  startedAt: string
  /** What is resumed; the other reasons are only reported, or left out where reasons were named. */
  reasons: Reason[]
  /** Whether somebody named them. */
  named: boolean
  maxPages: number
  dryRun: boolean
  /** A dry run notifies people if more than so many need attention. */
  notifyAbove?: number
  /** Nothing is resumed before a person approves. */
  approval: boolean
  /** A person is there: a breaker that has given up waits for them instead of ending the run. */
  attended: boolean
  /** How long the run waits for a person. */
  approvalMs: number
  /** How many of each reason go first. */
  canary: number
  /** Sent with each resume; if absent, the field is omitted. */
  nextBilling?: string
  /** The most resume requests that may have taken effect for one subscription in the same trouble, over all runs. */
  attempts: number
  /** The wait after the first attempt; each further one is twice as long, up to `longestWaitMs`. */
  firstWaitMs: number
  longestWaitMs: number
  coolDownMs: number
  olderThanMs?: number
  verifyMs: number
  settleMs: number
  breakerWaitsMs?: number[]
  limits: RecoveryLimits
  /** A new execution of the workflow begins after so many events. */
  eventsPerExecution: number
}

/** The files in a recovery's folder. */
export const recoveryFiles = {
  ...changeRunFiles,
  /** What was read of the list, step by step. */
  journal: 'snapshot.jsonl',
  /** What came of it: counts. */
  snapshot: 'snapshot.json',
  results: 'recovery.csv',
} as const

/** Whether what needs attention since then has done so for as long as `olderThan` asks. */
export function isLongEnough(since: string, { startedAt, olderThanMs }: RecoveryPlan): boolean {
  if (olderThanMs === undefined) return true
  const microseconds = toInstant(since)
  return microseconds !== undefined && microseconds / 1000 <= Date.parse(startedAt) - olderThanMs
}

/** The waits after the first, second ... attempt. */
export function waitsOf({ attempts, firstWaitMs, longestWaitMs }: RecoveryPlan): number[] {
  return Array.from({ length: attempts }, (_, index) => Math.min(firstWaitMs * 2 ** index, longestWaitMs))
}

/** One recovery at a time in a workspace and mode, however it was started. */
export const leaseOf = ({ identity: { workspace, mode } }: RecoveryPlan) => `recovery of ${workspace} ${mode}`

/** The leases that a recovery needs: a dry run resumes nothing, and needs none. */
export const leasesOf = (plan: RecoveryPlan): string[] => (plan.dryRun ? [] : [leaseOf(plan)])
