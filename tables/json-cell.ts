import { isRawNumber } from './json-value.ts'

/** Far deeper than anything that people keep in a record; the stack holds some thousands. */
const deepest = 500

/** A value nested so deeply that it is no data: whatever reads it again would exhaust its stack. */
export class TooDeepError extends Error {
  override readonly name = 'TooDeepError'
}

/**
 * A JSON value as a CSV cell: what quoting `JSON.stringify(value)` gives, written in one pass. To write the JSON
 * and double its quotes afterwards takes two to three times as long (measured on objects of a few short texts).
 * @throws {TooDeepError}
 */
export function toJsonCell(value: unknown): string {
  const text = toDoubled(value, 0)
  return isQuoted(value) ? `"${text}"` : text
}

// What JSON writes as an escape. Pairs of surrogates are let through by the slow way.
// oxlint-disable-next-line no-control-regex
const escaped = /["\\\x00-\x1f\ud800-\udfff]/

/** JSON with every quote doubled. */
function toDoubled(value: unknown, depth: number): string {
  if (typeof value === 'string')
    return escaped.test(value) ? JSON.stringify(value).replaceAll('"', '""') : `""${value}""`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (isRawNumber(value)) return value.rawJSON
  if (depth >= deepest) throw new TooDeepError(`nested more than ${deepest} deep`)
  return Array.isArray(value) ? toDoubledArray(value, depth + 1) : toDoubledObject(value, depth + 1)
}

function toDoubledArray(items: readonly unknown[], depth: number): string {
  let text = ''
  for (const item of items) text += text === '' ? toDoubled(item, depth) : `,${toDoubled(item, depth)}`
  return `[${text}]`
}

function toDoubledObject(fields: object, depth: number): string {
  let text = ''
  for (const [key, value] of Object.entries(fields)) {
    const field = `${toDoubled(key, depth)}:${toDoubled(value, depth)}`
    text += text === '' ? field : `,${field}`
  }
  return `{${text}}`
}

/** Whether the JSON of a value has a quote or a comma in it; it has no line ends. */
function isQuoted(value: unknown): boolean {
  if (typeof value === 'string') return true
  if (typeof value !== 'object' || value === null || isRawNumber(value)) return false
  if (!Array.isArray(value)) return Object.keys(value).length > 0
  return value.length > 1 || (value.length === 1 && isQuoted(value[0]))
}
