import { createHash } from 'node:crypto'

/** Hashes an input; the order of its fields does not matter. */
export const hashInput = (input: object): string =>
  createHash('sha256').update(toCanonical(input)).digest('hex').slice(0, 16)

function toCanonical(input: object): string {
  const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
  return JSON.stringify(input, (_, value: unknown) =>
    isObject(value)
      ? Object.fromEntries(Object.entries(value as object).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  )
}
