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
