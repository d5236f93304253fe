import { createHash } from 'node:crypto'

/** The same text for the same input, in whatever order its fields were put together. */
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
