import { z } from 'zod'
import { InvalidInput } from '../runs/errors.ts'

export const watchInput = z.strictObject({
  /** How far back the first look of a schedule goes; every later one begins where the last one ended. */
  lookBackHours: z.number().positive().max(720).optional(),
})
export type WatchInput = z.input<typeof watchInput>

export function parseWatchInput(input: unknown): WatchInput {
  const parsed = watchInput.safeParse(input)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'input'}: ${issue.message}`)
  throw new InvalidInput(
    `The input is not one the watch takes: ${problems.join('; ')}. Its only field is lookBackHours.`,
  )
}
