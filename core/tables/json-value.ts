import type { RawNumber } from '../billing/resources/fields.ts'

/** Whether a value is a number whose digits plain parsing would have changed. */
export const isRawNumber = (value: unknown): value is RawNumber => JSON.isRawJSON(value)

/** Whether a value is a JSON object (a number kept as raw JSON is not). */
export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value)

/** The text of a JSON scalar: a string itself, a number's digits as sent, `true` or `false`. */
export function toScalarText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return `${value}`
  return isRawNumber(value) ? value.rawJSON : undefined
}
