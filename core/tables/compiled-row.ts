import { toCell, type ToCell } from './cell.ts'
import { isRecord } from './json-value.ts'
import { toJsonCell } from './json-cell.ts'
import { redact } from './private-field.ts'
import { extraColumn, type FieldPlan, type ObjectPlan, type RowPlan } from './row-plan.ts'
import type { HashValue } from './private-field.ts'
import type { Rows, EncodedRows } from './encoded-rows.ts'

type Source = Readonly<Record<string, unknown>>

/** Appends rows of one table. `key` is the text of a row's key cells. */
export interface CompiledRow {
  append(source: Source, key: string): void
  /** A row of an item that is no object: its key and, in `_extra`, the item. */
  appendRest(item: unknown, key: string): void
}

/** The cells of an object, each with a comma before it. What is left over is in `out.rest`. */
type EncodeObject = (source: Source, key: string) => string

interface CompiledField {
  key: string
  /** What is written for null and absent: a comma for each column. */
  blank: string
  /** The cells of a value that is not null. What they can't hold goes to `out.rest`. */
  encode: (value: unknown, key: string) => string
}

export function compileRow(plan: RowPlan, compiling: Compiling): CompiledRow {
  const { out } = compiling
  const { name, parent, columns } = plan.table
  const rows = out.rowsOf(name)
  // A record's id is written before its other fields are looked at.
  const encode = compileObject(plan.object, compiling, parent === undefined ? ['id'] : [])
  const blank = blankOf(plan.object)
  const hasExtra = columns.at(-1)?.name === extraColumn
  const end = (rest: unknown) => {
    if (!hasExtra) return '\n'
    return rest === undefined ? ',\n' : `,${toJsonCell(rest)}\n`
  }
  return {
    append(source, key) {
      const cells = encode(source, key)
      rows.text += key + cells + end(out.rest)
      rows.rows++
      out.rest = undefined
    },
    appendRest(item, key) {
      rows.text += key + blank + end(item)
      rows.rows++
    },
  }
}

function compileObject(
  plan: ObjectPlan,
  compiling: Compiling,
  handled: readonly string[] = [],
): EncodeObject {
  const { out, hash } = compiling
  const fields = plan.fields.map((field) => compileField(field, compiling))
  const known = new Set([...handled, ...fields.map((field) => field.key)])

  const addUnknown = (source: Source, extra: Record<string, unknown>) => {
    let found = false
    for (const key of Object.keys(source)) {
      if (known.has(key)) continue
      const value = redact(source[key], plan.rule?.below.get(key), hash)
      if (value === undefined) continue
      extra[key] = value
      found = true
    }
    return found
  }

  return (source, key) => {
    let cells = ''
    let met = handled.length
    let extra: Record<string, unknown> | undefined
    for (const field of fields) {
      const value = source[field.key]
      if (value !== undefined) met++
      if (value === undefined || value === null) {
        cells += field.blank
        continue
      }
      cells += field.encode(value, key)
      if (out.rest === undefined) continue
      extra ??= Object.create(null) as Record<string, unknown>
      extra[field.key] = out.rest
      out.rest = undefined
    }
    // JSON has no undefined: a record with as many keys as fields were met has no unknown one.
    if (Object.keys(source).length !== met) {
      const unknown = extra ?? (Object.create(null) as Record<string, unknown>)
      if (addUnknown(source, unknown)) extra = unknown
    }
    out.rest = extra
    return cells
  }
}

function compileField(plan: FieldPlan, compiling: Compiling): CompiledField {
  const { key } = plan
  switch (plan.shape) {
    case 'cell':
      return { key, blank: ',', encode: compileCell(plan, compiling) }
    case 'object':
      return { key, blank: blankOf(plan.object), encode: compileNested(plan, compiling) }
    case 'list':
      return { key, blank: '', encode: compileList(plan, compiling) }
    default:
      return { key, blank: '', encode: () => '' }
  }
}

const blankOf = (plan: ObjectPlan): string =>
  plan.fields
    .map((field) => (field.shape === 'cell' ? ',' : field.shape === 'object' ? blankOf(field.object) : ''))
    .join('')

type Shape<S extends FieldPlan['shape']> = Extract<FieldPlan, { shape: S }>

function compileCell({ path, kind, rule }: Shape<'cell'>, { out, hash }: Compiling): CompiledField['encode'] {
  let write: ToCell = toCell[kind]
  if (rule?.action === 'hash') write = hash
  else if (rule !== undefined)
    write = (value) => {
      const left = redact(value, rule, hash)
      return left === undefined ? '' : toCell[kind](left)
    }
  return (value) => {
    const cell = write(value)
    if (cell !== undefined) return `,${cell}`
    out.spill(path, value)
    return ','
  }
}

function compileNested({ path, object }: Shape<'object'>, compiling: Compiling): CompiledField['encode'] {
  const { out } = compiling
  const encode = compileObject(object, compiling)
  const blank = blankOf(object)
  return (value, key) => {
    if (isRecord(value)) return encode(value, key)
    out.spill(path, object.rule === undefined ? value : undefined)
    return blank
  }
}

function compileList({ path, row }: Shape<'list'>, compiling: Compiling): CompiledField['encode'] {
  const { out } = compiling
  const rows = compileRow(row, compiling)
  const { rule } = row.object
  return (value, key) => {
    if (!Array.isArray(value)) {
      out.spill(path, rule === undefined ? value : undefined)
      return ''
    }
    for (let index = 0; index < value.length; index++) {
      const item: unknown = value[index]
      const itemKey = `${key},${index + 1}`
      if (isRecord(item)) rows.append(item, itemKey)
      else {
        out.spill(path, undefined)
        rows.appendRest(rule === undefined ? item : undefined, itemKey)
      }
    }
    return ''
  }
}

/** What the compiled parts of an encoder need of it. */
export interface Compiling {
  out: EncoderOutput
  hash: HashValue
}

/** Where an encoder's rows gather until they are taken, and what is met on the way. */
export interface EncoderOutput {
  /**
   * What the value encoded last could not put into cells; whoever takes it sets it back to undefined. Not a
   * return value beside the text: that would make an object for every object of every record.
   */
  rest: unknown
  readonly rejected: Rows
  rowsOf(table: string): Rows
  /** Counts a value its column can't hold, and leaves what of it may be written to `rest`. */
  spill(path: string, rest: unknown): void
  /** Does the work; if that throws, nothing of it is left among what was gathered. */
  orNothing(work: () => void): void
  /** Everything gathered since the last take. */
  take(): EncodedRows
}
