import { z } from 'zod'
import { parseDuration } from './duration.ts'

/** Longer waits are typos, and their ends would not be valid dates. */
const longestMs = 366 * 24 * 3_600_000

/** A duration in an input: `"15m"`, or a number of seconds. Parsed to seconds, so that a plan can be an input again. */
export const durationInput = z
  .union([z.number().min(0), z.string()], { error: 'is not a duration such as "15m", "2h" or 90 (seconds)' })
  .transform((input, context) => {
    const ms = parseDuration(String(input))
    if (ms !== undefined && ms <= longestMs) return ms / 1_000
    const problem = ms === undefined ? 'is not a duration' : 'is longer than 366 days; give a duration'
    const message = `${JSON.stringify(input)} ${problem} such as "90s", "15m", "2h" or "1d"`
    context.addIssue({ code: 'custom', message })
    return z.NEVER
  })

export const rateInput = z
  .number()
  .positive()
  .optional()
  .meta({ flag: '--rate <n>', help: "requests per second of this run, within the worker's rate" })

/** Only a limit of a run in progress has an option for it. */
export const concurrencyInput = z
  .int()
  .min(1)
  .max(100)
  .optional()
  .meta({ help: 'changes in flight at once', otherwise: 'BILLING_CONCURRENCY' })

export const maxFailureShareInput = z.number().min(0).max(1).optional().meta({
  help: 'the share of failures among the last outcomes that opens a circuit breaker',
  otherwise: '0.5',
})

export const dryRunInput = z
  .boolean()
  .default(false)
  .meta({ flag: '--dry-run', help: 'read, check and report; change nothing' })

export const attendedInput = z.boolean().default(false).meta({
  help: 'an operator is present: a breaker that has given up waits for them instead of ending the run',
})

/** Two hours cover a lunch break, and little changes in the meantime. */
export const approvalWaitInput = durationInput
  .prefault('2h')
  .meta({ help: 'how long the run waits for an approval' })

export const verifyAfterInput = durationInput
  .optional()
  .meta({ help: 'the wait before a lookup of what was sent', otherwise: 'BILLING_SETTLE_SECONDS' })

export const breakerWaitsInput = z
  .array(durationInput)
  .min(1)
  .optional()
  .meta({ help: 'how long an open breaker waits before each of its trials', otherwise: '1m, 2m, 4m' })
