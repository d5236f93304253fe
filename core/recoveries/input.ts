import { isDate } from '../billing/instants.ts'
import { z } from 'zod'
import { identityInput } from '../runs/identity-input.ts'
import { nearestName } from '../tables/nearest-name.ts'
import { parseInput } from '../runs/parse-input.ts'
import { durationInput } from '../runs/duration-input.ts'
import { hasPassed } from './next-billing.ts'
import { reasonNames } from './reasons.ts'

const hour = 3_600

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
  /** The most subscriptions to resume. The rest are reported as not tried. */
  maxChanges: z.int().min(1).default(500),
  /** This run's share of the process's request rate. */
  requestsPerSecond: z.number().positive().optional(),
  /** The most resumes in flight; default BILLING_CONCURRENCY. */
  concurrency: z.int().min(1).max(100).optional(),
  /** The largest share of failures among the last outcomes of a reason before its breaker opens; default 0.5. */
  maxFailureShare: z.number().min(0).max(1).optional(),
})
export type RecoveryLimits = Partial<z.output<typeof recoveryLimits>>

/** What a plan keeps of its input, under the same names. The defaults are cautious because money moves. */
export const recoverySettings = z.object({
  /** The most list requests, including failed ones. The rest of the list is left to another run. */
  maxPages: z.int().min(1).default(50),
  /** Reads and reports, but resumes nothing. */
  dryRun: z.boolean().default(false),
  /** A dry run notifies people (NOTIFY_URL) if more than this many need attention. */
  notifyAbove: z.int().min(0).optional(),
  /** The number of subscriptions per reason that are resumed first, as a canary. */
  canary: z.int().min(0).max(100).default(5),
  /** False: resumes without asking for approval, as scheduled runs do. */
  approval: z.boolean().default(true),
  /** A person is present: a breaker that has given up waits for them instead of ending the run. */
  attended: z.boolean().optional(),
  /** How long the run waits for a person. Two hours cover a lunch break, and little changes in the meantime. */
  approvalWait: durationInput.default(2 * hour),
  /** Sent with each resume. Default: the field is omitted. */
  nextBilling: nextBilling.optional(),
  /** The most resume requests for one subscription in the same incident, across all runs: a hard limit. */
  attempts: z.int().min(1).max(10).default(3),
  /** The wait after the first attempt; doubles with each further attempt, up to `longestWait`. */
  firstWait: durationInput.default(hour / 4),
  longestWait: durationInput.default(4 * hour),
  /** A subscription that was resumed more recently than this is left alone. */
  coolDown: durationInput.default(hour),
  /** How long after a resume its result is looked up; default BILLING_SETTLE_SECONDS. */
  verifyAfter: durationInput.optional(),
  breakerWaits: z.array(durationInput).min(1).optional(),
  /** Recovers only subscriptions that have needed attention for at least this long. */
  olderThan: durationInput.optional(),
  /**
   * The number of history events after which the workflow continues as a new execution. Far below the limit of
   * 51,200 that ends an execution: the 2,000 updates that an execution accepts may add some 20,000 while the run
   * waits. Temporal suggests a new execution at 4,096; a history this short is also quick to replay.
   */
  eventsPerExecution: z.int().min(50).max(10_000).default(1_000),
})

/** The lists of an input; they stay in the run's folder. */
export const narrowing = z.object({
  /** Recovers only subscriptions of these customers. */
  customers: z.array(z.string().min(1)).min(1).optional(),
  /** Skips these customers or subscriptions. */
  exclude: z.array(z.string().min(1)).min(1).optional(),
})
export type Narrowing = z.output<typeof narrowing>

/** The input of `recoverSubscriptions`: one object in which every field is optional, as the Temporal UI sends it. */
export const recoveryInput = z.strictObject(
  {
    /** The reasons to resume. Default: those that a resume can fix. The others are only reported. */
    reasons: z.array(reason).min(1).optional(),
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
