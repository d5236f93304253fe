import { z } from 'zod'
import { parseInput } from '../runs/parse-input.ts'

export const watchInput = z.strictObject({
  /** How far back the first check goes; each later one begins where the last one ended. */
  lookBackHours: z.number().positive().max(720).optional(),
})
export type WatchInput = z.input<typeof watchInput>

/** @throws {InvalidInput} */
export const parseWatchInput = (input: unknown): WatchInput =>
  parseInput({ schema: watchInput, input, taker: 'the watch' })
