import { toCell, type ToCell } from '../cell.ts'
import { isRecord } from '../json-value.ts'
import { toJsonCell } from '../json-cell.ts'
import { redact } from '../private-field.ts'
import { extraColumn, type FieldPlan, type ObjectPlan, type RowPlan } from './row-plan.ts'
import type { HashValue } from '../private-field.ts'
import type { Rows, EncodedRows } from './encoded-rows.ts'

type Source = Readonly<Record<string, unknown>>

/** Appends rows of one table. `key` is the text of a row's key cells. */
export interface CompiledRow {
  append(source: Source, key: string): void
  /** Appends a row for an item that is not an object: its key, and the item in `_extra`. */
  appendLeftover(item: unknown, key: string): void
}

/** Cells, each preceded by a comma; with the leftover that they could not hold, if any. */
type Encoded = string | { cells: string; leftover: unknown }

type EncodeObject = (source: Source, key: string) => Encoded

interface CompiledField {
  key: string
  /** The cells of null or an absent value: a comma for each column. */
  empty: string
  /** Encodes the cells of a non-null value. */
  encode: (value: unknown, key: string) => Encoded
}

export function compileRow(plan: RowPlan, compiling: Compiling): CompiledRow {
  const { name, parent, columns } = plan.table
  const rows = compiling.out.rowsOf(name)
  // Writes a record's id before checking its other fields.
  const encode = compileObject(plan.object, compiling, parent === undefined ? ['id'] : [])
  const empty = emptyOf(plan.object)
  const hasExtra = columns.at(-1)?.name === extraColumn
  const append = (key: string, encoded: Encoded) => {
    const { cells, leftover } =
      typeof encoded === 'string' ? { cells: encoded, leftover: undefined } : encoded
    const extra = !hasExtra ? '' : leftover === undefined ? ',' : `,${toJsonCell(leftover)}`
    rows.text += `${key}${cells}${extra}\n`
    rows.rows++
  }
  return {
    append: (source, key) => append(key, encode(source, key)),
    appendLeftover: (item, key) => append(key, { cells: empty, leftover: item }),
  }
}

function compileObject(
  plan: ObjectPlan,
  compiling: Compiling,
  handled: readonly string[] = [],
): EncodeObject {
  const { hash, out } = compiling
  const note = out.watch(
    plan.path,
    plan.fields.filter(({ shape }) => shape !== 'hidden').map(({ key }) => key),
  )
  const fields = plan.fields.map((field) => compileField(field, compiling))
  const known = new Set([...handled, ...fields.map((field) => field.key)])
  return (source, key) => {
    note(source)
    let cells = ''
    let met = handled.length
    let leftover: Record<string, unknown> | undefined
    for (const field of fields) {
      const value = source[field.key]
      if (value !== undefined) met++
      const encoded = value === undefined || value === null ? field.empty : field.encode(value, key)
      if (typeof encoded === 'string') cells += encoded
      else {
        cells += encoded.cells
        leftover = withKept(leftover, field.key, encoded.leftover)
      }
    }
    // JSON has no undefined: if the record has as many keys as known fields were seen, it has no unknown
    // one.
    if (Object.keys(source).length !== met)
      for (const name of Object.keys(source))
        if (!known.has(name)) {
          const kept = redact(source[name], plan.rule?.below.get(name), hash)
          if (kept === undefined) continue
          out.countUnknown(`${plan.path}.${name}`)
          leftover = withKept(leftover, name, kept)
        }
    return leftover === undefined ? cells : { cells, leftover }
  }
}

/** Adds one leftover to an object's. Without a prototype, `__proto__` is an ordinary field. */
function withKept(leftover: Record<string, unknown> | undefined, name: string, value: unknown) {
  if (value === undefined) return leftover
  const kept = leftover ?? (Object.create(null) as Record<string, unknown>)
  kept[name] = value
  return kept
}

function compileField(plan: FieldPlan, compiling: Compiling): CompiledField {
  const { key } = plan
  switch (plan.shape) {
    case 'cell':
      return { key, empty: ',', encode: compileCell(plan, compiling) }
    case 'object':
      return { key, empty: emptyOf(plan.object), encode: compileNested(plan, compiling) }
    case 'list':
      return { key, empty: '', encode: compileList(plan, compiling) }
    default:
      return { key, empty: '', encode: () => '' }
  }
}

const emptyOf = (plan: ObjectPlan): string =>
  plan.fields
    .map((field) => (field.shape === 'cell' ? ',' : field.shape === 'object' ? emptyOf(field.object) : ''))
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
    out.countMisfit(path, value)
    return { cells: ',', leftover: value }
  }
}

function compileNested({ path, object }: Shape<'object'>, compiling: Compiling): CompiledField['encode'] {
  const { out } = compiling
  const encode = compileObject(object, compiling)
  const empty = emptyOf(object)
  return (value, key) => {
    if (isRecord(value)) return encode(value, key)
    out.countMisfit(path, value)
    return { cells: empty, leftover: object.rule === undefined ? value : undefined }
  }
}

function compileList({ path, row }: Shape<'list'>, compiling: Compiling): CompiledField['encode'] {
  const { out } = compiling
  const rows = compileRow(row, compiling)
  const { rule } = row.object
  return (value, key) => {
    if (!Array.isArray(value)) {
      out.countMisfit(path, value)
      return { cells: '', leftover: rule === undefined ? value : undefined }
    }
    for (const [index, item] of (value as unknown[]).entries()) {
      const itemKey = `${key},${index + 1}`
      if (isRecord(item)) rows.append(item, itemKey)
      else {
        out.countMisfit(path, item)
        rows.appendLeftover(rule === undefined ? item : undefined, itemKey)
      }
    }
    return ''
  }
}

/** What the compiled parts of an encoder need from it. */
export interface Compiling {
  out: EncoderOutput
  hash: HashValue
}

/** Collects an encoder's rows until they are taken. */
export interface EncoderOutput {
  readonly rejected: Rows
  rowsOf(table: string): Rows
  /** Counts a value that its column cannot hold. */
  countMisfit(path: string, value: unknown): void
  /** Counts a field that the schema lacks. */
  countUnknown(path: string): void
  /** Returns what is to be called with each object at a path, to find the fields that none of them has. */
  watch(path: string, fields: readonly string[]): (source: Readonly<Record<string, unknown>>) => void
  /** Runs the work; if it throws, discards everything it appended. */
  orNothing(work: () => void): void
  /** Returns everything collected since the last call. */
  take(): EncodedRows
}
