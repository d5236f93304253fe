import { quoteCell } from './csv-text.ts'
import { isRawNumber } from './json-value.ts'

/** The deepest nesting accepted: far deeper than real records; the stack holds some thousands. */
const deepest = 500

/** The value is nested so deeply that reading it again would exhaust the reader's stack. */
export class TooDeepError extends Error {
  override readonly name = 'TooDeepError'
}

/**
 * Writes a JSON value as a CSV cell.
 * @throws {TooDeepError}
 */
export function toJsonCell(value: unknown): string {
  const json = JSON.stringify(value)
  // A short text needs no check: each level takes two characters.
  if (json.length > 2 * deepest) checkDepth(value, 0)
  return quoteCell(json)
}

function checkDepth(value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null || isRawNumber(value)) return
  if (depth >= deepest) throw new TooDeepError(`nested more than ${deepest} deep`)
  for (const inner of Object.values(value)) checkDepth(inner, depth + 1)
}
