import { isDate, isTimestamp } from '../billing/instants.ts'
import { isRawNumber, toScalarText } from '../billing/lossless-json.ts'
import type { Kind } from './table.ts'

/** Returns the CSV text of a non-null value, or undefined if its column cannot hold it. */
type ToCell = (value: unknown) => string | undefined

/**
 * How each kind of column writes a value: accepted if its text is valid for the column, whatever its JSON
 * type. A number column takes what JSON calls a number, with every digit and without leading zeros (a text
 * such as "007" is an identifier, and a warehouse's number column would lose its zeros).
 */
export const toCell: Readonly<Record<Kind, ToCell>> = {
  text: toTextCell,
  integer: toIntegerCell,
  decimal: toDecimalCell,
  boolean: (value) => takeIf(toScalarText(value), isBoolean),
  date: (value) => takeIf(toScalarText(value), isDate),
  timestamp: (value) => takeIf(toScalarText(value), isTimestamp),
  json: toJsonColumnCell,
}

/**
 * Whether every destination can store the text unchanged. UTF-8 has no lone surrogates, and PostgreSQL and
 * many CSV readers have no NUL. JSON can write both (`\ud800`, `\u0000`), so such text goes to `_extra`.
 */
const isStorable = (text: string) => text.isWellFormed() && !text.includes('\0')

// Characters that need a closer check: one pass over the text instead of three. Surrogate pairs (emoji)
// match too.
const special = /[",\n\r\0\ufeff\ud800-\udfff]/

function toTextCell(value: unknown): string | undefined {
  const text = typeof value === 'string' ? value : toScalarText(value)
  if (text === undefined) return undefined
  if (text !== '' && !special.test(text)) return text
  return isStorable(text) ? quoteCell(text) : undefined
}

const integer = /^-?(0|[1-9]\d{0,18})$/

/** An integer column holds 64 bits everywhere; larger numbers go to `_extra`. */
const isInt64 = (text: string) => text.length < 19 || BigInt.asIntN(64, BigInt(text)) === BigInt(text)

function toIntegerCell(value: unknown): string | undefined {
  if (Number.isSafeInteger(value)) return `${value as number}`
  return takeIf(toScalarText(value), (text) => integer.test(text) && isInt64(text))
}

/**
 * Longer numbers, in characters, go to `_extra`. PostgreSQL's numeric ends at 131,072 digits before the
 * point and 16,383 after it; this length and an exponent of four digits stay within that.
 */
const longestNumber = 6_000

const decimal = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d{1,4})?$/

function toDecimalCell(value: unknown): string | undefined {
  if (typeof value === 'number') return `${value}`
  return takeIf(toScalarText(value), (text) => text.length <= longestNumber && decimal.test(text))
}

/** What may be rejected by PostgreSQL's jsonb, which all JSON columns follow: found fast, then checked. */
const doubtfulJson = /\\u0000|\\ud[89a-f]|\d[eE]|\d{400}/

/** The most digits that the numbers of a document may have when they are written out, as jsonb does. */
const mostDigits = 1_000_000

function toJsonColumnCell(value: unknown): string | undefined {
  const cell = toJsonCell(value)
  return doubtfulJson.test(cell) && countDigits(value) > mostDigits ? undefined : cell
}

/** The digits of all numbers of a document, written out; Infinity if it has a text or a number that jsonb does not take. */
function countDigits(value: unknown): number {
  if (typeof value === 'string') return isStorable(value) ? 0 : Infinity
  if (typeof value === 'number' || isRawNumber(value)) {
    const number = toDecimalCell(value)
    return number === undefined
      ? Infinity
      : number.length + Math.abs(Number(/[eE](.*)$/.exec(number)?.[1] ?? 0))
  }
  if (typeof value !== 'object' || value === null) return 0
  return Object.entries(value).reduce(
    (sum, [name, inner]) => sum + countDigits(inner) + (isStorable(name) ? 0 : Infinity),
    0,
  )
}

const isBoolean = (text: string) => text === 'true' || text === 'false'

const takeIf = (text: string | undefined, isValid: (text: string) => boolean): string | undefined =>
  text !== undefined && isValid(text) ? text : undefined

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

/**
 * Our CSV: RFC 4180 with `,`, `\n` and UTF-8. NULL is an empty field and the empty string is `""`, which
 * keeps them apart. A leading U+FEFF is quoted: readers take it for the file's own mark where a file begins with it.
 * A property test compares every cell with csv-stringify's output.
 */
const quotable = /[",\n\r]|^\ufeff/

export function quoteCell(text: string): string {
  if (text === '') return '""'
  // The pattern is faster than the text '"', which builds the result piece by piece.
  return quotable.test(text) ? `"${text.replaceAll(/"/g, '""')}"` : text
}

/** For csv-parse: an empty field is null; a quoted empty field is the empty string. */
export const readCell = (text: string, context: { quoting: boolean }): string | null =>
  text === '' && !context.quoting ? null : text
