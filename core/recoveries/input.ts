import { isDate, toInstant } from '../billing/instants.ts'
import { z } from 'zod'
import {
  approvalWaitInput,
  attendedInput,
  breakerWaitsInput,
  concurrencyInput,
  dryRunInput,
  durationInput,
  identityInput,
  maxFailureShareInput,
  parseInput,
  rateInput,
  toMs,
  verifyAfterInput,
} from '../runs/inputs.ts'
import { nearestName } from '../tables/nearest-name.ts'
import { type Reason, reasonNames, triedReasons } from './reasons.ts'
import { type ChangeRun, reportFiles } from '../runs/run-notes.ts'
import type { Execution } from '../runs/name.ts'

/** Half a day: a date that is today anywhere on Earth has not passed. */
export const dayMarginMs = 12 * 3_600_000

/** Whether a date has passed in every time zone. Checked when a run begins and again before each resume. */
export const hasPassed = (date: string, now: number): boolean =>
  date < new Date(now - dayMarginMs).toISOString().slice(0, 10)

const reason = z.enum(reasonNames, {
  error: ({ input }) => {
    const near = typeof input === 'string' ? nearestName(input, reasonNames) : undefined
    const meant = near === undefined ? '' : ` (did you mean ${near}?)`
    return `${JSON.stringify(input)} is not a known reason${meant}; the reasons are ${reasonNames.join(', ')}`
  },
})

const nextBilling = z.string().check(({ value, issues }) => {
  const add = (message: string) => issues.push({ code: 'custom', input: value, message })
  if (!/^\d{4}-\d\d-\d\d$/.test(value)) add(`${JSON.stringify(value)} is not a date such as 2026-12-01`)
  else if (!isDate(value)) add(`${value} does not exist`)
  else if (hasPassed(value, Date.now())) add(`${value} is in the past; give today or later, or leave it out`)
})

/** The limits of a recovery, which people may change while it runs. */
export const recoveryLimits = z.object({
  maxChanges: z
    .int()
    .min(1)
    .default(500)
    .meta({ flag: '--max-changes <n>', help: 'the most subscriptions to resume; the others are not tried' }),
  requestsPerSecond: rateInput,
  concurrency: concurrencyInput,
  maxFailureShare: maxFailureShareInput,
})
export type RecoveryLimits = Partial<z.output<typeof recoveryLimits>>

/** The fields of the input that the plan keeps, under the same names. The defaults are cautious because money moves. */
export const recoverySettings = z.object({
  maxPages: z.int().min(1).default(50).meta({
    help: 'the most requests for the list, failed ones included; the rest of the list is left to another run',
  }),
  dryRun: dryRunInput,
  notifyAbove: z
    .int()
    .min(0)
    .optional()
    .meta({ help: 'a dry run notifies people if more than this many need attention' }),
  canary: z
    .int()
    .min(0)
    .max(100)
    .default(5)
    .meta({ help: 'how many subscriptions of each reason to resume first' }),
  approval: z.boolean().default(true).meta({
    flag: '--wait-for-approval',
    help: 'resume nothing until somebody approves',
  }),
  attended: attendedInput,
  approvalWait: approvalWaitInput,
  nextBilling: nextBilling.optional().meta({
    help: 'sent with each resume, as in 2026-12-01',
    otherwise: 'not sent',
  }),
  attempts: z.int().min(1).max(10).default(3).meta({
    help: 'the most resume requests for one subscription with the same problem, over all runs: a hard limit',
  }),
  firstWait: durationInput
    .prefault('15m')
    .meta({ help: 'the wait before a second attempt; it doubles for each further one, up to `longestWait`' }),
  longestWait: durationInput.prefault('4h').meta({ help: 'the longest wait between two attempts' }),
  coolDown: durationInput.prefault('1h').meta({
    help: 'a subscription that any run has resumed more recently is left alone',
  }),
  verifyAfter: verifyAfterInput,
  breakerWaits: breakerWaitsInput,
  olderThan: durationInput.optional().meta({
    flag: '--older-than <time>',
    help: 'only subscriptions that have needed attention at least this long, as in 2h or 3d',
  }),
  /**
   * Far below the limit of 51,200 events that ends an execution: the 2,000 updates that an execution accepts may add some
   * 20,000 while the run waits. Temporal suggests a new execution at 4,096; a history this short is also quick to replay.
   */
  eventsPerExecution: z
    .int()
    .min(50)
    .max(10_000)
    .default(1_000)
    .meta({ help: 'the number of history events after which the workflow continues as a new execution' }),
})

/** The lists of an input; they stay out of the history. */
export const narrowing = z.object({
  customers: z
    .array(z.string().min(1))
    .min(1)
    .optional()
    .meta({ help: 'only subscriptions of these customers' }),
  skip: z.array(z.string().min(1)).min(1).optional().meta({ help: 'customers or subscriptions to skip' }),
})
export type CandidateFilter = z.output<typeof narrowing>

/** The input of `recoverSubscriptions`: one object in which every field is optional, as the Temporal UI sends it. */
export const recoveryInput = z.strictObject(
  {
    reasons: z
      .array(reason)
      .min(1)
      .optional()
      .meta({
        flag: '--reason <reasons>',
        help: 'the reasons to resume; the others are only reported',
        otherwise: triedReasons.join(', '),
      }),
    ...recoverySettings.shape,
    ...recoveryLimits.shape,
    ...narrowing.shape,
    identity: identityInput,
  },
  {
    error: ({ code, input }) =>
      code === 'invalid_type'
        ? `expected one object, such as {"reasons": ["gateway_issue"]}, and got ${kindOf(input)}`
        : undefined,
  },
)
export type RecoveryInput = z.input<typeof recoveryInput>
export type ParsedRecovery = z.output<typeof recoveryInput>

/** @throws {InvalidInput} the input is not valid */
export const parseRecoveryInput = (input: unknown): ParsedRecovery =>
  parseInput({ schema: recoveryInput, input, taker: 'a recovery' })

const kindOf = (input: unknown) =>
  Array.isArray(input) ? 'a list' : input === null ? 'null' : `a ${typeof input}`

/**
 * The plan of a recovery, fixed at its start. Holds only names, counts and times, because it is part of the
 * workflow's history; lists of customers are notes of the run. What the input decides has the same names here.
 */
export interface RecoveryPlan extends ChangeRun, z.output<typeof recoverySettings> {
  job: 'recovery'
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

/** The files that people read, in a recovery's folder. */
export const recoveryFiles = { ...reportFiles, results: 'recovery.csv' } as const

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
