import type { FieldMeta } from '../../billing/resources/fields.ts'
import type { Rule } from '../problems.ts'
import { type DateOrder, readDate } from './dates.ts'
import { type CellReading, faultOf, toJsonNumber } from './field-value.ts'
import { readJsonCell } from './json-cell.ts'
import type { Conventions } from './locale.ts'
import { type DecimalMark, explainScientific, isScientific, readNumber, type Unreadable } from './numbers.ts'

export interface CellToRead {
  text: string
  meta: FieldMeta
  /** The cell's row, for a later cell that contradicts it. */
  row: number
  /** Whether surrounding whitespace is ignored. */
  trimmed: boolean
}

/** Reads the cells of one file. Empty cells and `\N` are handled earlier. */
export interface CellReader {
  read(cell: CellToRead): CellReading
  /** The file's decimal mark, as far as its options or cells so far show it. */
  decimal(): DecimalMark | undefined
}

/**
 * Creates the reader. All cells of a file must follow one convention: a cell that reads only with a decimal
 * comma, after one that reads only with a point, stops the file; so does month-first after day-first.
 */
export function createCellReader({ conventions }: { conventions: Conventions }): CellReader {
  const mark = createConsistencyCheck<DecimalMark>({
    ',': 'a decimal comma',
    '.': 'a decimal point',
  })
  const order = createConsistencyCheck<DateOrder>({
    dmy: 'the day first',
    mdy: 'the month first',
    ymd: 'the year first',
  })

  function number({ text, meta, row }: CellToRead): CellReading {
    const reading = readNumber(text, conventions.decimal)
    if ('message' in reading) return unread('number', reading)
    if ('readings' in reading) return ambiguous(twoReadings(reading.readings), '--decimal , or --decimal .')
    const contradiction = mark.contradicts(reading.mark, row)
    if (contradiction !== undefined) return ambiguous(contradiction, '--decimal , or --decimal .')
    const digits = meta.kind === 'integer' ? wholeOf(reading.number) : reading.number
    if (digits === undefined) return unread('number', { message: 'is not a whole number' })
    return checked({ text: digits, meta, value: toJsonNumber(digits) })
  }

  function date({ text, meta, row }: CellToRead): CellReading {
    const reading = readDate(text, conventions.dates)
    if ('message' in reading) return unread('date', reading)
    if ('readings' in reading) return ambiguous(twoReadings(reading.readings), '--dates dmy or --dates mdy')
    const contradiction = order.contradicts(reading.order, row)
    if (contradiction !== undefined) return ambiguous(contradiction, '--dates dmy or --dates mdy')
    return checked({ text: reading.date, meta, value: reading.date })
  }

  const readers: Readonly<Record<FieldMeta['kind'], CellReader['read']>> = {
    text: readText,
    timestamp: readText,
    integer: number,
    decimal: number,
    date,
    boolean: readBoolean,
    json: readJsonCell,
    list: readJsonCell,
    object: readJsonCell,
  }
  return {
    read: (cell) => readers[cell.meta.kind](cell),
    decimal: () => conventions.decimal ?? mark.first(),
  }
}

/** Remembers where a file first showed its convention, and describes the contradiction if a later cell differs. */
function createConsistencyCheck<Way extends string>(names: Readonly<Record<Way, string>>) {
  let first: { way: Way; row: number } | undefined
  return {
    first: () => first?.way,
    contradicts(way: Way | undefined, row: number): string | undefined {
      if (way === undefined) return undefined
      first ??= { way, row }
      return first.way === way ? undefined : `has ${names[way]}, but row ${first.row} has ${names[first.way]}`
    },
  }
}

function readText({ text, meta, trimmed }: CellToRead): CellReading {
  if (isScientific(text)) return unread('number', explainScientific(text))
  const isWord = trimmed || meta.values !== undefined || meta.format === 'email'
  const value = isWord ? text.trim() : text
  return checked({ text: value, meta, value })
}

/** Accepts zeros after the decimal mark, which lose nothing (`7.0`, as some programs write every number). */
const wholeOf = (number: string): string | undefined => /^(-?\d+)(?:\.0+)?$/.exec(number)?.[1]

/** Spreadsheets in Spanish and Portuguese use the words of their language. */
const booleans: Readonly<Record<string, boolean>> = {
  true: true,
  false: false,
  verdadero: true,
  verdadeiro: true,
  falso: false,
}
const nearBooleans: Readonly<Record<string, string>> = {
  sí: 'true',
  si: 'true',
  sim: 'true',
  yes: 'true',
  '1': 'true',
  no: 'false',
  não: 'false',
  '0': 'false',
}

function readBoolean({ text }: CellToRead): CellReading {
  const word = text.trim().toLowerCase()
  const value = booleans[word]
  if (value !== undefined) return { value }
  return { fault: { rule: 'boolean', message: 'is neither true nor false', fix: nearBooleans[word] } }
}

function checked({ text, meta, value }: { text: string; meta: FieldMeta; value: unknown }): CellReading {
  const fault = faultOf(text, meta)
  return fault === undefined ? { value } : { fault }
}

function unread(rule: Rule, { message, fix, ambiguous }: Unreadable): CellReading {
  if (ambiguous === true) return { fault: { rule: 'ambiguous', message, stops: true } }
  return { fault: { rule, message, fix } }
}

const twoReadings = (readings: readonly string[]) => `could mean ${readings.join(' or ')}`

const ambiguous = (message: string, options: string): CellReading => ({
  fault: { rule: 'ambiguous', message: `${message}. Set --locale, ${options}`, stops: true },
})
