import type { CellReading } from './field-value.ts'
import type { FieldMeta } from '../../billing/resources/fields.ts'
import { type DateOrder, readDate } from './dates.ts'
import { faultOf, toJsonNumber } from './field-value.ts'
import { readJsonCell } from './json-cell.ts'
import type { Conventions } from './locale.ts'
import { type DecimalMark, aboutScientific, isScientific, type NotRead, readNumber } from './numbers.ts'
import type { Rule } from '../problems.ts'

export interface CellToRead {
  text: string
  meta: FieldMeta
  /** Where the cell stands, for what a later cell contradicts. */
  row: number
  /** Blanks around it are no part of it. */
  trimmed: boolean
}

/** Reads cells of one file; an empty cell and `\N` never come here. */
export type CellReader = (cell: CellToRead) => CellReading

/**
 * A file is read one way: a cell that only reads with a decimal comma, below one that only reads with a point,
 * stops it, as does a month first below a day first.
 */
export function createCellReader({ conventions }: { conventions: Conventions }): CellReader {
  const mark = createWatch<DecimalMark>({ ',': 'a decimal comma', '.': 'a decimal point' })
  const order = createWatch<DateOrder>({
    dmy: 'the day first',
    mdy: 'the month first',
    ymd: 'the year first',
  })

  function number({ text, meta, row }: CellToRead): CellReading {
    const reading = readNumber(text, conventions.decimal)
    if ('wrong' in reading) return unread('number', reading)
    if ('readings' in reading)
      return ambiguous(`reads both as ${reading.readings.join(' and as ')}`, '--decimal , or --decimal .')
    const against = mark({ seen: reading.mark, row })
    if (against !== undefined) return ambiguous(against, '--decimal , or --decimal .')
    const digits = meta.kind === 'integer' ? wholeOf(reading.number) : reading.number
    if (digits === undefined)
      return unread('number', { wrong: `is ${reading.number}, and a whole number is asked for` })
    return checked({ text: digits, meta, value: toJsonNumber(digits) })
  }

  function date({ text, meta, row }: CellToRead): CellReading {
    const reading = readDate(text, conventions.dates)
    if ('wrong' in reading) return unread('date', reading)
    if ('readings' in reading)
      return ambiguous(`reads both as ${reading.readings.join(' and as ')}`, '--dates dmy or --dates mdy')
    const against = order({ seen: reading.order, row })
    if (against !== undefined) return ambiguous(against, '--dates dmy or --dates mdy')
    return checked({ text: reading.date, meta, value: reading.date })
  }

  function text({ text, meta, trimmed }: CellToRead): CellReading {
    if (isScientific(text)) return unread('number', aboutScientific(text))
    const isWord = trimmed || meta.values !== undefined || meta.format === 'email'
    const value = isWord ? text.trim() : text
    return checked({ text: value, meta, value })
  }

  const readers: Readonly<Record<FieldMeta['kind'], CellReader>> = {
    text,
    timestamp: text,
    integer: number,
    decimal: number,
    date,
    boolean: readBoolean,
    json: readJsonCell,
    list: readJsonCell,
    object: readJsonCell,
  }
  return (cell) => readers[cell.meta.kind](cell)
}

/** Remembers where a file first showed which way it is written, and says so where a cell shows another. */
function createWatch<Way extends string>(names: Readonly<Record<Way, string>>) {
  let first: { way: Way; row: number } | undefined
  return ({ seen, row }: { seen: Way | undefined; row: number }): string | undefined => {
    if (seen === undefined) return undefined
    first ??= { way: seen, row }
    return first.way === seen ? undefined : `has ${names[seen]}, and row ${first.row} has ${names[first.way]}`
  }
}

/** Zeros behind the decimal mark lose nothing (`7.0`, as some programs write every number). */
const wholeOf = (number: string): string | undefined => /^(-?\d+)(?:\.0+)?$/.exec(number)?.[1]

/** Also what a spreadsheet makes of the words in Spanish. */
const booleans: Readonly<Record<string, boolean>> = {
  true: true,
  false: false,
  verdadero: true,
  falso: false,
}
const nearBooleans: Readonly<Record<string, string>> = {
  sí: 'true',
  si: 'true',
  yes: 'true',
  '1': 'true',
  no: 'false',
  '0': 'false',
}

function readBoolean({ text }: CellToRead): CellReading {
  const word = text.trim().toLowerCase()
  const value = booleans[word]
  if (value !== undefined) return { value }
  const fix = nearBooleans[word]
  return unread('boolean', { wrong: 'is neither true nor false', ...(fix === undefined ? {} : { fix }) })
}

function checked({ text, meta, value }: { text: string; meta: FieldMeta; value: unknown }): CellReading {
  const fault = faultOf(text, meta)
  return fault === undefined ? { value } : { fault }
}

function unread(rule: Rule, { wrong, fix, ambiguous }: NotRead): CellReading {
  if (ambiguous === true) return { fault: { rule: 'ambiguous', words: wrong, stops: true } }
  return { fault: { rule, words: wrong, ...(fix === undefined ? {} : { fix }) } }
}

const ambiguous = (words: string, options: string): CellReading => ({
  fault: { rule: 'ambiguous', words: `${words}: say which with --locale, ${options}`, stops: true },
})
