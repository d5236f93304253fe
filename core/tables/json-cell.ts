import { quoteCell } from './csv-text.ts'
import { isRawNumber } from './json-value.ts'

/** Far deeper than anything that people keep in a record; the stack holds some thousands. */
const deepest = 500

/** A value nested so deeply that it is no data: whatever reads it again would exhaust its stack. */
export class TooDeepError extends Error {
  override readonly name = 'TooDeepError'
}

/**
 * A JSON value as a CSV cell.
 * @throws {TooDeepError}
 */
export function toJsonCell(value: unknown): string {
  checkDepth(value, 0)
  return quoteCell(JSON.stringify(value))
}

function checkDepth(value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null || isRawNumber(value)) return
  if (depth >= deepest) throw new TooDeepError(`nested more than ${deepest} deep`)
  for (const inner of Object.values(value)) checkDepth(inner, depth + 1)
}
