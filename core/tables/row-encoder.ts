import type { z } from 'zod'
import { fieldsOf } from '../billing/resources/fields.ts'
import { addDrift, countMisfit, countUnknown, noDrift, type Drift } from './drift.ts'
import { toCell, toJsonCell, TooDeepError } from './cell.ts'
import { isRecord, toScalarText } from '../billing/lossless-json.ts'
import { toPrivateFields, toTables, type Privacy } from './privacy.ts'
import { createHash, createRedact, redactSchema } from './redact.ts'
import { isRecordId, pathOf, extraColumn, type Table, type TableSource } from './table.ts'
import { currencyColumn, decimalColumns, type Totals, TotalsCounter } from './totals.ts'

/** CSV text without a header (or lines of JSON), and how many rows it holds. */
export interface Rows {
  text: string
  rows: number
}

/** The result of encoding some records. Each record is either a row of the main table or a rejected line. */
export interface EncodedRows {
  /** One entry per table, in the order of the encoder's `tables`. */
  tables: Rows[]
  /** Lines of `rejected.jsonl`: `{"reason", "record"}`, without private values. */
  rejected: Rows
  drift: Drift
  /**
   * For each record the positions of its rows in the tables below, as a certificate has them: for each table `;` and
   * positions such as `1,2 1,3`. Undefined if the record has no row.
   */
  below: (string | undefined)[]
  totals: Totals
}

export interface RowEncoder {
  readonly tables: readonly Table[]
  /**
   * Encodes records of the service, parsed without loss, into rows. Nothing is lost: values that no column
   * holds go to `_extra`, under their path; a list item that is not an object gets a row with only `_extra`.
   */
  encode(records: readonly unknown[]): EncodedRows
  /** The key cell for a service id, before quoting: the id or its hash. */
  toWrittenId: (id: string) => string
}

type Fields = Readonly<Record<string, unknown>>

/** Some values are walked by the engine's own recursion, which can exhaust the stack. */
const isTooDeep = (error: unknown) => error instanceof TooDeepError || error instanceof RangeError

/**
 * Creates the encoder of a resource. It removes what is private from a record before anything else.
 * @throws {UnknownFieldError | PrivacyRefusedError} `privacy` cannot be applied
 */
export function createRowEncoder(options: { resource: TableSource; privacy?: Privacy }): RowEncoder {
  const { resource, privacy = {} } = options
  const { name: resourceName } = resource
  const rule = toPrivateFields(resource, privacy)
  const hash = createHash(privacy.hashKey ?? '')
  const redact = createRedact({ schema: resource.schema, rule, hash })
  const schema = redactSchema(resource.schema, rule)
  const tables = toTables(resource, privacy)
  const { kind } = tables[0]!.columns[0]!
  const decimals = new Map(decimalColumns(tables).map(([name, { source }]) => [source, name]))
  const hasCurrency =
    tables[0]!.columns.some(({ name }) => name === currencyColumn) && !rule?.below.has(currencyColumn)
  const counter = new TotalsCounter(tables, { hasCurrency })
  /** Of the record that is being encoded. */
  let decimalCells: { column: string; cell: string }[] = []

  const outputs = tables.map((table) => ({
    path: pathOf(table),
    hasExtra: table.columns.at(-1)?.name === extraColumn,
    rows: { text: '', rows: 0 },
    /** Of the rows of the present record. */
    positions: [] as string[],
  }))
  const outputOf = new Map(outputs.map((output) => [output.path, output]))
  const rejected = { text: '', rows: 0 }
  let drift = noDrift()
  /** The length of the present record's id, with which each of its keys begins. */
  let idLength = 0
  /** For each kind of object that occurred, by its path: the fields that it never had. */
  const absent = new Map<string, string[]>()

  function noteFields(object: Fields, schema: z.ZodObject, path: string): void {
    let never = absent.get(path)
    never ??= fieldsOf(schema).flatMap(([name]) => (isRecordId(name, path, resourceName) ? [] : [name]))
    if (never.length > 0 || !absent.has(path))
      absent.set(
        path,
        never.filter((name) => object[name] === undefined),
      )
  }

  /** Writes an object's cells, each after a comma, and returns what they cannot hold. Undefined has empty cells. */
  function encodeObject(
    object: Fields | undefined,
    schema: z.ZodObject,
    path: string,
    key: string,
  ): { cells: string; leftover: Leftover } {
    let cells = ''
    let leftover: Leftover
    let known = 0
    for (const [name, meta] of fieldsOf(schema)) {
      const value = object?.[name]
      const isEmpty = value === undefined || value === null
      if (value !== undefined) known++
      if (meta.kind === 'list') {
        if (Array.isArray(value)) appendItems(value, meta.fields, `${path}.${name}`, key)
        else if (!isEmpty) leftover = withMisfit(leftover, path, name, value)
      } else if (meta.kind === 'object') {
        const inner = isRecord(value) ? value : undefined
        const encoded = encodeObject(inner, meta.fields, `${path}.${name}`, key)
        cells += encoded.cells
        if (encoded.leftover !== undefined) leftover = withField(leftover, name, encoded.leftover)
        if (inner === undefined && !isEmpty) leftover = withMisfit(leftover, path, name, value)
      } else if (!isRecordId(name, path, resourceName)) {
        const cell = isEmpty ? '' : typeof value === 'symbol' ? undefined : toCell[meta.kind](value)
        if (cell === undefined) leftover = withMisfit(leftover, path, name, value)
        cells += `,${cell ?? ''}`
        if (meta.kind === 'decimal')
          decimalCells.push({ column: decimals.get(`${path}.${name}`)!, cell: cell ?? '' })
      }
    }
    if (object === undefined) return { cells, leftover }
    noteFields(object, schema, path)
    // JSON has no undefined: an object with as many keys as known fields has no unknown one.
    if (Object.keys(object).length !== known)
      for (const name of Object.keys(object))
        if (object[name] !== undefined && !Object.hasOwn(schema.shape, name)) {
          countUnknown(drift, `${path}.${name}`)
          leftover = withField(leftover, name, object[name])
        }
    return { cells, leftover }
  }

  function withMisfit(leftover: Leftover, path: string, name: string, value: unknown): Leftover {
    countMisfit(drift, `${path}.${name}`, value)
    return withField(leftover, name, value)
  }

  function appendItems(items: readonly unknown[], schema: z.ZodObject, path: string, key: string): void {
    for (const [index, item] of items.entries()) {
      if (!isRecord(item)) countMisfit(drift, path, item)
      appendRow(item, schema, path, `${key},${index + 1}`)
    }
  }

  /** Appends an item's row. One that is not an object has only its key, and itself in `_extra`. */
  function appendRow(item: unknown, schema: z.ZodObject, path: string, key: string): void {
    const { rows, hasExtra, positions } = outputOf.get(path)!
    const encoded = encodeObject(isRecord(item) ? item : undefined, schema, path, key)
    const leftover = isRecord(item) || typeof item === 'symbol' ? encoded.leftover : item
    const extra = leftover === undefined ? '' : toJsonCell(leftover)
    rows.text += `${key}${encoded.cells}${hasExtra ? `,${extra}` : ''}\n`
    rows.rows++
    if (key.length > idLength) positions.push(key.slice(idLength + 1))
  }

  function encodeRecord(record: unknown): string | undefined {
    if (!isRecord(record)) return reject(record, 'the record is not an object')
    const { id } = record
    if (id === undefined || id === null || id === '') return reject(record, 'the record has no id')
    const rowsBefore = outputs.map(({ rows }) => ({ ...rows }))
    const driftBefore = drift
    drift = noDrift()
    decimalCells = []
    try {
      const left = redact(record) as Fields
      // As where it was read (`idOf`), whatever a hash of it looks like.
      const isId = typeof id !== 'boolean' && toScalarText(id) !== undefined
      const key = isId ? toCell[kind](left['id']) : undefined
      if (key === undefined) return reject(record, `the record's id can't be kept as ${kind}`)
      idLength = key.length
      for (const { positions } of outputs) positions.length = 0
      appendRow(left, schema, resourceName, key)
      addDrift(driftBefore, drift)
      counter.add(decimalCells, currencyOf(left), left['created'])
      return outputs
        .slice(1)
        .map(({ positions }) => `;${positions.join(' ')}`)
        .join('')
    } catch (error) {
      if (!isTooDeep(error)) throw error
      for (const [at, { rows }] of outputs.entries()) Object.assign(rows, rowsBefore[at])
      return reject({ id }, 'the record is nested too deeply')
    } finally {
      drift = driftBefore
    }
  }

  function reject(record: unknown, reason: string): undefined {
    rejected.text += `${toLine(record, reason)}\n`
    rejected.rows++
  }

  function toLine(record: unknown, reason: string): string {
    const lineOf = (record: unknown) => {
      const left = redact(record)
      return JSON.stringify({ reason, record: typeof left === 'symbol' ? null : left })
    }
    try {
      return lineOf(record)
    } catch (error) {
      if (!isTooDeep(error)) throw error
      return lineOf(isRecord(record) ? { id: toScalarText(record['id']) } : null)
    }
  }

  return {
    tables,
    encode(records) {
      const below = records.map(encodeRecord)
      const taken = drift
      for (const [path, fields] of absent) taken.absent[path] = [...fields]
      drift = noDrift()
      return {
        tables: outputs.map(({ rows }) => takeRows(rows)),
        rejected: takeRows(rejected),
        drift: taken,
        below,
        totals: counter.take(),
      }
    },
    toWrittenId: (id) => (rule?.below.get('id')?.action === 'hash' ? hash(id) : id),
  }
}

/** What the cells of an object cannot hold: goes to `_extra`. */
type Leftover = Record<string, unknown> | undefined

function withField(leftover: Leftover, name: string, value: unknown): Leftover {
  if (typeof value === 'symbol') return leftover
  // Without a prototype, `__proto__` is an ordinary field.
  const fields = leftover ?? (Object.create(null) as Record<string, unknown>)
  fields[name] = value
  return fields
}

function takeRows(rows: Rows): Rows {
  const taken = { ...rows }
  rows.text = ''
  rows.rows = 0
  return taken
}

/** The currency of a record, if its column can hold it. */
function currencyOf({ [currencyColumn]: currency }: Fields): string | undefined {
  const text = toScalarText(currency)
  return text === undefined || toCell.text(text) === undefined ? undefined : text
}
