import { quoteCell } from './csv-text.ts'
import { toJsonCell } from './json-cell.ts'
import { isDate, isTimestamp } from './instants.ts'
import { toScalarText } from './json-value.ts'
import type { Kind } from './table.ts'

/** Returns the CSV text of a non-null value, or undefined if its column cannot hold it. */
export type ToCell = (value: unknown) => string | undefined

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
  json: toJsonCell,
}

/**
 * Whether every destination can store the text unchanged. UTF-8 has no lone surrogates, and PostgreSQL and
 * many CSV readers have no NUL. JSON can write both (`\ud800`, `\u0000`), so such text goes to `_extra`.
 */
const isStorable = (text: string) => text.isWellFormed() && !text.includes('\0')

// Characters that need a closer check: one pass over the text instead of three. Surrogate pairs (emoji)
// match too.
const special = /[",\n\r\0\ud800-\udfff]/

function toTextCell(value: unknown): string | undefined {
  const text = typeof value === 'string' ? value : toScalarText(value)
  if (text === undefined) return undefined
  if (text !== '' && !special.test(text)) return text
  return isStorable(text) ? quoteCell(text) : undefined
}

const integer = /^-?(0|[1-9]\d*)$/

/**
 * Longer numbers, in characters, go to `_extra`. PostgreSQL's numeric ends at 131,072 digits before the
 * point and 16,383 after it; this length and an exponent of four digits stay within that.
 */
const longestNumber = 6_000

function toIntegerCell(value: unknown): string | undefined {
  if (Number.isSafeInteger(value)) return `${value as number}`
  return takeIf(toScalarText(value), (text) => text.length <= longestNumber && integer.test(text))
}

const decimal = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d{1,4})?$/

function toDecimalCell(value: unknown): string | undefined {
  if (typeof value === 'number') return `${value}`
  return takeIf(toScalarText(value), (text) => text.length <= longestNumber && decimal.test(text))
}

const isBoolean = (text: string) => text === 'true' || text === 'false'

const takeIf = (text: string | undefined, isValid: (text: string) => boolean): string | undefined =>
  text !== undefined && isValid(text) ? text : undefined
