import { quoteCell } from './csv-text.ts'
import { toJsonCell } from './json-cell.ts'
import { isDate, isTimestamp } from './instants.ts'
import { toScalarText } from './json-value.ts'
import type { Kind } from './table.ts'

/** The CSV text of a value that is not null, or undefined where its column can't hold it. */
export type ToCell = (value: unknown) => string | undefined

/**
 * How each kind of column writes a value: taken if its text is valid for the column, whatever JSON type it came
 * as. A number column takes what JSON calls a number, with every digit and without leading zeros (a text such as
 * "007" is an identifier, and a number column of a warehouse would lose its zeros).
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
 * Whether text can be kept as it is in every destination. UTF-8 has no lone surrogates, and PostgreSQL and many
 * CSV readers have no NUL; as JSON both can be written (`\ud800`, `\u0000`), so such a text goes to `_extra`.
 */
const isStorable = (text: string) => text.isWellFormed() && !text.includes('\0')

// What needs a closer look: one pass over the text instead of three. Pairs of surrogates (emoji) are looked at too.
const special = /[",\n\r\0\ud800-\udfff]/

function toTextCell(value: unknown): string | undefined {
  const text = typeof value === 'string' ? value : toScalarText(value)
  if (text === undefined) return undefined
  if (text !== '' && !special.test(text)) return text
  return isStorable(text) ? quoteCell(text) : undefined
}

const integer = /^-?(0|[1-9]\d*)$/

/**
 * Longer numbers go to `_extra`. PostgreSQL's numeric ends at 131,072 digits before the point and 16,383 behind it;
 * this many characters and an exponent of four digits stay inside that.
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
