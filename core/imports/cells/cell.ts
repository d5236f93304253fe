import { type FieldMeta, type Numeric, fieldsOf } from '../../billing/resources/fields.ts'
import { compareDecimals } from '../../changes/compare-fields.ts'
import { nearestName } from '../../tables/nearest-name.ts'
import type { Fault } from '../problems.ts'
import {
  type Conventions,
  type DateOrder,
  type DecimalMark,
  type Reading,
  explainScientific,
  isScientific,
  longestNumber,
  readDate,
  readNumber,
  tooLongNumber,
} from './notation.ts'
import { isRecord, numberText, parseLossless } from '../../billing/lossless-json.ts'
import { isDate } from '../../billing/instants.ts'
import { refusalOf } from './refused.ts'

export type CellReading = { value: unknown } | { fault: Fault }

/** Parses a number with every digit, as `parseLossless` does. */
export function toJsonNumber(digits: string): unknown {
  const number = Number(digits)
  return String(number) === digits ? number : JSON.rawJSON(digits)
}

/** The longest possible address. Checking longer text takes quadratic time. */
const longestEmail = 320
const email = /^[^\s@,;<>()"]+@[^\s@,;<>()".]+(\.[^\s@,;<>()".]+)+$/

/** The field rule that a value breaks. `text`: the value as text, or the digits of a number. */
export function faultOf(text: string, meta: FieldMeta): Fault | undefined {
  if (meta.values !== undefined && !meta.values.includes(text))
    return {
      rule: 'value',
      message: `is not one of ${meta.values.join(', ')}`,
      fix: nearestName(text, meta.values),
    }
  // The service counts characters; there are at least as many UTF-16 units.
  if (meta.maxLength !== undefined && text.length > meta.maxLength) {
    const length = Array.from(text).length
    if (length > meta.maxLength)
      return { rule: 'length', message: `has ${length} characters; the limit is ${meta.maxLength}` }
  }
  if (meta.format === 'email' && !email.test(text))
    return { rule: 'email', message: 'is not a valid email address', fix: fixEmail(text) }
  if (meta.min !== undefined && compareDecimals(text, meta.min) < 0)
    return { rule: 'min', message: `is less than ${meta.min}` }
  return undefined
}

function fixEmail(text: string): string | undefined {
  if (text.length > longestEmail) return undefined
  const fix = text
    .trim()
    .replaceAll(/\s+/g, '')
    .replace(/[,;.]+$/, '')
  return email.test(fix) ? fix : undefined
}

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
export function createCellReader(conventions: Conventions): CellReader {
  const marks = { ',': 'a decimal comma', '.': 'a decimal point' }
  const orders = { dmy: 'the day first', mdy: 'the month first', ymd: 'the year first' }
  const mark = createConvention<DecimalMark>(marks, `--input decimal=',' or --input decimal='.'`)
  const order = createConvention<DateOrder>(orders, '--input dates=dmy or --input dates=mdy')

  function number({ text, meta, row }: CellToRead): CellReading {
    const found = mark.settle(readNumber(text, conventions.decimal), row)
    if ('fault' in found) return found
    const digits = meta.kind === 'integer' ? wholeOf(found.value) : found.value
    if (digits === undefined) return { fault: { rule: 'number', message: 'is not a whole number' } }
    return checked({ text: digits, meta, value: toJsonNumber(digits) })
  }

  function date({ text, meta, row }: CellToRead): CellReading {
    const found = order.settle(readDate(text, conventions.dates), row)
    return 'fault' in found ? found : checked({ text: found.value, meta, value: found.value })
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

/** Remembers where a file first showed its convention: a cell that contradicts it is ambiguous. */
function createConvention<Way extends string>(names: Readonly<Record<Way, string>>, options: string) {
  let first: { way: Way; row: number } | undefined
  function doubtOf(reading: Exclude<Reading<Way>, Fault>, row: number): string | undefined {
    if ('readings' in reading) return `could mean ${reading.readings.join(' or ')}`
    const { way } = reading
    if (way === undefined) return undefined
    first ??= { way, row }
    return first.way === way ? undefined : `has ${names[way]}, but row ${first.row} has ${names[first.way]}`
  }
  return {
    first: () => first?.way,
    settle(reading: Reading<Way>, row: number): { value: string } | { fault: Fault } {
      if ('message' in reading) return { fault: reading }
      const doubt = doubtOf(reading, row)
      if (doubt === undefined && 'value' in reading) return reading
      return { fault: { rule: 'ambiguous', message: `${doubt}. Set --locale, ${options}`, stops: true } }
    },
  }
}

function readText({ text, meta, trimmed }: CellToRead): CellReading {
  if (isScientific(text)) return { fault: explainScientific(text) }
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

/** Reads a JSON cell, such as `lines`. Every value must fit its field; read-only fields are dropped. */
export function readJsonCell({ text, meta }: { text: string; meta: FieldMeta }): CellReading {
  let parsed: unknown
  try {
    parsed = parseLossless(text)
  } catch {
    return { fault: { rule: 'json', message: 'is not valid JSON' } }
  }
  try {
    return { value: readValue(parsed, meta, []) }
  } catch (error) {
    if (error instanceof Misfit) return { fault: error.fault }
    throw error
  }
}

/** The path in the cell: `1`, `amount`. */
type Path = readonly string[]

/** A value in the cell does not fit its field. */
class Misfit extends Error {
  readonly fault: Fault
  constructor(path: Path, { message, ...fault }: Fault) {
    super(message)
    const place = path.join('.')
    this.fault = { ...fault, message: place === '' ? message : `is wrong: ${place} ${message}` }
  }
}

function readValue(value: unknown, meta: FieldMeta, path: Path): unknown {
  if (meta.kind === 'json') return value
  if (meta.kind === 'object') return readObject(value, fieldsOf(meta.fields), path)
  if (meta.kind === 'list') {
    if (!Array.isArray(value))
      throw new Misfit(path, { rule: 'json', message: 'is not a list: [{...}, {...}]' })
    const fields = fieldsOf(meta.fields)
    return value.map((item: unknown, index) => readObject(item, fields, [...path, String(index + 1)]))
  }
  if (value === null) {
    if (meta.nullable === true) return null
    throw new Misfit(path, { rule: 'null', message: 'must not be null' })
  }
  const { text, result } = readScalar(value, meta, path)
  const fault = faultOf(text, meta)
  if (fault !== undefined) throw new Misfit(path, fault)
  return result
}

function readObject(value: unknown, fields: readonly [string, FieldMeta][], path: Path): unknown {
  if (!isRecord(value)) throw new Misfit(path, { rule: 'json', message: 'is not an object: {...}' })
  const known = new Map(fields)
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]: [string, unknown]) => {
      const meta = known.get(name)
      if (meta === undefined)
        throw new Misfit([...path, name], {
          rule: 'json',
          message: 'is not a field',
          fix: nearestName(name, known.keys()),
        })
      return meta.write === 'readOnly' ? [] : [[name, readValue(inner, meta, [...path, name])]]
    }),
  )
}

// Scientific notation is rejected, as in a cell of its own.
const jsonNumber = /^-?(0|[1-9]\d*)(\.\d+)?$/
const jsonInteger = /^-?(0|[1-9]\d*)$/

function readScalar(value: unknown, meta: FieldMeta, path: Path): { text: string; result: unknown } {
  if (meta.kind === 'decimal' || meta.kind === 'integer') {
    const text = isNumeric(value) ? numberText(value) : ''
    const [pattern, noun] = meta.kind === 'integer' ? [jsonInteger, 'whole number'] : [jsonNumber, 'number']
    if (!pattern.test(text)) throw new Misfit(path, { rule: 'number', message: `is not a ${noun}` })
    if (text.length > longestNumber) throw new Misfit(path, { rule: 'number', message: tooLongNumber })
    return { text, result: toJsonNumber(text) }
  }
  if (meta.kind === 'boolean') {
    if (typeof value === 'boolean') return { text: String(value), result: value }
    throw new Misfit(path, { rule: 'boolean', message: 'is neither true nor false' })
  }
  if (typeof value !== 'string') throw new Misfit(path, { rule: 'json', message: 'is not text' })
  if (meta.kind === 'date' && !isDate(value))
    throw new Misfit(path, { rule: 'date', message: 'is not a date such as 2026-03-25' })
  const fault = refusalOf(value, { meta })
  if (fault !== undefined) throw new Misfit(path, fault)
  return { text: value, result: value }
}

const isNumeric = (value: unknown): value is Numeric =>
  typeof value === 'number' || typeof value === 'string' || JSON.isRawJSON(value)
