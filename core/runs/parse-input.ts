import type { z } from 'zod'
import { InvalidInput } from './errors.ts'

/**
 * Reads the input of a run, or says in one sentence all that is wrong with it and which fields it takes.
 *
 * @throws {InvalidInput}
 */
export function parseInput<S extends z.ZodObject>(options: {
  schema: S
  input: unknown
  /** As in `an export`. */
  taker: string
}): z.output<S> {
  const { schema, input, taker } = options
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  const fields = Object.keys(schema.shape)
  const allowed =
    fields.length === 1 ? `Its only field is ${fields[0]}.` : `Its fields are ${fields.join(', ')}.`
  throw new InvalidInput(`The input is not one ${taker} takes: ${toProblems(parsed.error)}. ${allowed}`)
}

/** All that zod found, in one line; `root` names the value itself. */
export const toProblems = ({ issues }: z.ZodError, root = 'input'): string =>
  issues.map(({ path, message }) => `${path.join('.') || root}: ${message}`).join('; ')
