import { numberText, parseLossless } from '../billing/lossless-json.ts'
import type { FieldMeta, Numeric } from '../billing/resources/fields.ts'
import { fieldsOf } from '../tables/field-meta.ts'
import { isDate } from '../tables/instants.ts'
import { nearestName } from '../tables/nearest-name.ts'
import type { CellReading } from './cell-reader.ts'
import { faultOf, toJsonNumber } from './field-value.ts'
import { longestNumber, tooLongNumber } from './numbers.ts'
import type { Fault } from './problems.ts'

/** A JSON cell, such as `lines`. Every value in it has to be what its field holds; read-only fields are left out. */
export function readJsonCell({ text, meta }: { text: string; meta: FieldMeta }): CellReading {
  let value: unknown
  try {
    value = parseLossless(text)
  } catch {
    return { fault: { rule: 'json', words: 'is no JSON' } }
  }
  return readJsonValue({ value, meta, path: '' })
}

interface JsonValue {
  value: unknown
  meta: FieldMeta
  /** `1.amount`: where in the cell. */
  path: string
}

function readJsonValue({ value, meta, path }: JsonValue): CellReading {
  if (meta.kind === 'json') return { value }
  if (meta.kind === 'list') return readList({ value, meta, path })
  if (meta.kind === 'object') return readObject({ value, fields: fieldsOf(meta.fields), path })
  if (value === null)
    return meta.nullable === true ? { value } : at(path, { rule: 'null', words: 'can’t be null' })
  return readScalar({ value, meta, path })
}

function readList({ value, meta, path }: JsonValue & { meta: FieldMeta & { kind: 'list' } }): CellReading {
  if (!Array.isArray(value)) return at(path, { rule: 'json', words: 'is no list: [{...}, {...}]' })
  const fields = fieldsOf(meta.fields)
  const items: unknown[] = []
  for (const [index, item] of value.entries()) {
    const read = readObject({ value: item as unknown, fields, path: join(path, String(index + 1)) })
    if ('fault' in read) return read
    items.push(read.value)
  }
  return { value: items }
}

function readObject({
  value,
  fields,
  path,
}: {
  value: unknown
  fields: readonly [string, FieldMeta][]
  path: string
}): CellReading {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || JSON.isRawJSON(value))
    return at(path, { rule: 'json', words: 'is no object: {...}' })
  const known = new Map(fields)
  const read: Record<string, unknown> = {}
  for (const [name, inner] of Object.entries(value)) {
    const meta = known.get(name)
    if (meta === undefined) {
      const fix = nearestName(name, known.keys())
      return at(join(path, name), {
        rule: 'json',
        words: 'is no field',
        ...(fix === undefined ? {} : { fix }),
      })
    }
    if (meta.write === 'readOnly') continue
    const reading = readJsonValue({ value: inner as unknown, meta, path: join(path, name) })
    if ('fault' in reading) return reading
    read[name] = reading.value
  }
  return { value: read }
}

// In scientific notation a number is refused here as it is in a cell of its own.
const jsonNumber = /^-?(0|[1-9]\d*)(\.\d+)?$/
const jsonInteger = /^-?(0|[1-9]\d*)$/

function readScalar({ value, meta, path }: JsonValue): CellReading {
  const isNumber = meta.kind === 'decimal' || meta.kind === 'integer'
  if (isNumber) {
    const text = isNumeric(value) ? numberText(value) : ''
    if (!(meta.kind === 'integer' ? jsonInteger : jsonNumber).test(text))
      return at(path, { rule: 'number', words: `is no ${meta.kind === 'integer' ? 'whole ' : ''}number` })
    if (text.length > longestNumber) return at(path, { rule: 'number', words: tooLongNumber })
    return checked({ value: toJsonNumber(text), meta, path, text })
  }
  if (meta.kind === 'boolean')
    return typeof value === 'boolean'
      ? { value }
      : at(path, { rule: 'boolean', words: 'is neither true nor false' })
  if (typeof value !== 'string') return at(path, { rule: 'json', words: 'is no text' })
  if (meta.kind === 'date' && !isDate(value))
    return at(path, { rule: 'date', words: 'is not a date such as 2026-03-25' })
  return checked({ value, meta, path, text: value })
}

function checked({ value, meta, path, text }: JsonValue & { text: string }): CellReading {
  const fault = faultOf(text, meta)
  return fault === undefined ? { value } : at(path, fault)
}

const isNumeric = (value: unknown): value is Numeric =>
  typeof value === 'number' || typeof value === 'string' || JSON.isRawJSON(value)

const join = (path: string, name: string) => (path === '' ? name : `${path}.${name}`)

const at = (path: string, { words, ...fault }: Fault): CellReading => ({
  fault: { ...fault, words: path === '' ? words : `has at ${path} what ${words}` },
})
