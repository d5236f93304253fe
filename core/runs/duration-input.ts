import { z } from 'zod'
import { parseDuration } from './duration.ts'

/** Longer waits are typos, and their ends would not be valid dates. */
const longestMs = 366 * 24 * 3_600_000

/** A duration in an input: `"15m"`, or a number of seconds. Parsed to milliseconds. */
export const durationInput = z
  .union([z.number().min(0), z.string()], { error: 'is no length of time, as "15m", "2h" or 90 (seconds)' })
  .transform((input, context) => {
    const ms = parseDuration(String(input))
    if (ms !== undefined && ms <= longestMs) return ms
    const problem =
      ms === undefined ? 'is no length of time' : 'is longer than 366 days; give a length of time'
    const message = `${JSON.stringify(input)} ${problem}, as "90s", "15m", "2h" or "1d"`
    context.addIssue({ code: 'custom', message })
    return z.NEVER
  })
