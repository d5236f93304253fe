import { isRecord, numberText, parseLossless } from '../../billing/lossless-json.ts'
import { type FieldMeta, fieldsOf, type Numeric } from '../../billing/resources/fields.ts'
import { isDate } from '../../billing/instants.ts'
import { nearestName } from '../../tables/nearest-name.ts'
import { placeholderMessage } from './placeholders.ts'
import { type CellReading, faultOf, hiddenFault, toJsonNumber } from './field-value.ts'
import { longestNumber, tooLongNumber } from './numbers.ts'
import type { Fault } from '../problems.ts'

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
  const message = placeholderMessage(value)
  const fault =
    message === undefined ? hiddenFault(value, { meta, trimmed: false }) : { rule: 'error' as const, message }
  if (fault !== undefined) throw new Misfit(path, fault)
  return { text: value, result: value }
}

const isNumeric = (value: unknown): value is Numeric =>
  typeof value === 'number' || typeof value === 'string' || JSON.isRawJSON(value)
