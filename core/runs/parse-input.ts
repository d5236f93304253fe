import type { z } from 'zod'
import { InvalidInput } from './errors.ts'

/**
 * Parses the input of a run. An invalid one is rejected in one sentence with all problems and the accepted
 * fields.
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

/**
 * The most problems listed: there may be a hundred thousand, and the server limits the size of a failure.
 */
const mostProblems = 20
const longestPlace = 100
const longestMessage = 300

/** Zod's issues on one line; `root` names the value itself. */
export function toProblems({ issues }: z.ZodError, root = 'input'): string {
  const shown = issues
    .slice(0, mostProblems)
    .map(
      ({ path, message }) => `${cut(path.join('.') || root, longestPlace)}: ${cut(message, longestMessage)}`,
    )
  const more = issues.length - shown.length
  return [...shown, ...(more > 0 ? [`and ${more.toLocaleString('en')} more`] : [])].join('; ')
}

const cut = (text: string, most: number) => (text.length > most ? `${text.slice(0, most)}...` : text)
