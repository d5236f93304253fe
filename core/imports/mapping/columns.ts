import { stringify } from 'csv-stringify/sync'
import type { z } from 'zod'
import { type FieldMeta, fieldOf, fieldsOf } from '../../billing/resources/fields.ts'
import { shell } from '../../runs/view/shell.ts'
import { createNearestName, nearestName } from '../../tables/nearest-name.ts'
import { conventionsOf, withMark, writeDate } from '../cells/notation.ts'
import { comparableName, readableName } from '../cells/refused.ts'
import { resultColumns } from '../csv/table.ts'
import { type ImportKind, type ImportKindName, importKinds, requiredFields } from '../kinds.ts'
import { aboutColumn, type Problem } from '../problems.ts'
import type { Mapping } from './mapping.ts'

/** Stands for the index of a row within its change: its item of the list. */
export const eachRow = Symbol('each row')

export type Step = string | number | typeof eachRow

/** The field that the cells of a column belong to. */
export interface FieldTarget {
  /** As a header has it: `total`, `lines.2.amount`, `lines.amount`. */
  name: string
  path: readonly Step[]
  meta: FieldMeta
  readOnly: boolean
}

/** A larger index is a typo rather than a list. */
const mostItems = 500

/**
 * Resolves a name to a field of a kind: `total`; `lines` (a JSON cell); `lines.2.amount` (the second line);
 * `lines.amount` or `line.amount` (each row is a line). Ignores case and surrounding whitespace.
 */
export function toTarget(kind: ImportKind, name: string): FieldTarget | undefined {
  const parts = comparableName(name).split('.')
  if (kind.list !== undefined && `${parts[0]}s` === kind.list) parts[0] = kind.list
  const path: Step[] = []
  let fields: z.ZodObject = kind.schema
  let readOnly = false
  for (let at = 0; ; at++) {
    const meta = fieldOf(fields, parts[at] ?? '')
    if (meta === undefined) return undefined
    path.push(parts[at] ?? '')
    readOnly ||= meta.write === 'readOnly'
    const isLast = at === parts.length - 1
    if (meta.kind === 'object' && !isLast) ({ fields } = meta)
    else if (meta.kind === 'list' && !isLast) {
      ;({ fields } = meta)
      const index = parts[at + 1] ?? ''
      if (/^\d+$/.test(index)) {
        const item = Number(index)
        if (item < 1 || item > mostItems) return undefined
        path.push(item - 1)
        at++
        if (at === parts.length - 1) return undefined
      } else if (at === 0 && parts[0] === kind.list) path.push(eachRow)
      else return undefined
    } else
      return isLast && meta.kind !== 'object' ? { name: parts.join('.'), path, meta, readOnly } : undefined
  }
}

/** The names that select a field: its own, and that of its list. */
const namesOf = ({ name, path }: FieldTarget): string[] => [name, String(path[0])]

/** Valid header names, to suggest for a mistyped one. */
function knownNames(kind: ImportKind): string[] {
  const isWritable = ([, { write }]: [string, FieldMeta]) => write !== 'readOnly'
  return fieldsOf(kind.schema).flatMap(([key, meta]) => {
    if (key === 'id' && kind.does !== 'create') return [key]
    if (!isWritable([key, meta])) return []
    if (meta.kind !== 'list') return [key]
    const inner = fieldsOf(meta.fields).filter(isWritable)
    const each = key === kind.list ? inner.map(([field]) => `${key}.${field}`) : []
    return [key, ...each, ...inner.map(([field]) => `${key}.1.${field}`)]
  })
}

export interface ColumnMappingOptions {
  kind: ImportKind
  header: readonly string[]
  mapping: Mapping
  /** The only fields to send of an update. */
  columns?: readonly string[] | undefined
}

/** The field of each column of a file. */
export interface ColumnMapping {
  /** By index in the header; undefined for an ignored column. */
  targets: readonly (FieldTarget | undefined)[]
  /** Fields with the same value in every row, as text. */
  constants: readonly { target: FieldTarget; text: string }[]
  /** Consecutive rows may form one change. */
  grouped: boolean
  ignored: readonly { column: string; reason: string }[]
  /** The field of every name that a header of this file may have; an ignored column stands for itself. */
  fields: ReadonlyMap<string, string>
  problems: readonly Problem[]
  /** Indexes of columns without a name, which must be empty. */
  unnamed: readonly number[]
}

type NearestName = ReturnType<typeof createNearestName>
type Resolved = { target: FieldTarget } | { ignored: string } | { message: string; fix?: string | undefined }

/** Maps the columns of a header to fields, and collects every problem with them. */
export function mapColumns(options: ColumnMappingOptions): ColumnMapping {
  const { kind, mapping, columns } = options
  const header = options.header.map(readableName)
  const nearest = createNearestName(() => knownNames(kind))
  const resolve = createResolver(options, nearest)
  const resolved = header.map((column) => (column === '' ? undefined : resolve(column)))
  const targets = resolved.map((one) => (one && 'target' in one ? one.target : undefined))
  const problems = resolved.flatMap((one, index) =>
    one && 'message' in one ? [aboutColumn(header[index] ?? '', { ...one, position: index + 1 })] : [],
  )
  const constants = Object.entries(mapping.set ?? {}).flatMap(([name, text]) => {
    const target = toTarget(kind, name)
    if (target?.readOnly === false) return [{ target, text }]
    const fault =
      target === undefined
        ? { message: `is not a field of ${kind.one}s`, fix: nearest(name) }
        : { message: 'is a field that only the service writes' }
    problems.push(aboutColumn(`--set ${name}`, fault))
    return []
  })
  const sources = [
    ...targets.flatMap((target, index) => (target ? [{ target, column: header[index] ?? '' }] : [])),
    ...constants.map(({ target }) => ({ target, column: `--set ${target.name}` })),
  ]
  const given = sources.map(({ target }) => target)
  return {
    targets,
    constants,
    grouped: given.some(({ path }) => path.includes(eachRow)),
    ignored: resolved.flatMap((one, index) =>
      one && 'ignored' in one ? [{ column: header[index] ?? '', reason: one.ignored }] : [],
    ),
    fields: fieldsByName({ ...options, header }),
    unnamed: header.flatMap((column, index) => (column === '' ? [index] : [])),
    problems: [
      ...problems,
      ...findDuplicates(sources),
      ...findMissing(kind, given, problems.length > 0 ? problems.map(({ column }) => column) : header),
      ...(columns === undefined ? refuseWholeExport(kind, header) : findUnknown(columns, given, nearest)),
    ],
  }
}

/** Prepared once for a header: a file may have 2,000 columns, and a mapping as many names. */
function createResolver({ kind, mapping, columns }: ColumnMappingOptions, nearest: NearestName) {
  const own = mapping.columns ?? {}
  const byName = new Map(Object.entries(own).map(([theirs, ours]) => [comparableName(theirs), ours]))
  const selected = columns && new Set(columns.map(comparableName))
  return (column: string): Resolved => {
    if ((resultColumns as readonly string[]).includes(column))
      return { ignored: 'it belongs to a result file' }
    // An exact name takes precedence over one that differs in case.
    const mapped = Object.hasOwn(own, column) ? own[column] : byName.get(comparableName(column))
    if (mapped === null) return { ignored: 'it is mapped to nothing' }
    const target = toTarget(kind, mapped ?? column)
    if (target === undefined) {
      // Exports have columns such as `_extra` and `_read_at`.
      if (mapped === undefined && (kind.foreign?.includes(column) === true || column.startsWith('_')))
        return { ignored: 'it comes from an export and is not a field' }
      const message =
        mapped === undefined
          ? `is not a field of ${kind.one}s. Map it with ${shell`--map ${`${column}=...`}`}, or ignore it with ${shell`--map ${`${column}=`}`}`
          : `maps to ${mapped}, which is not a field of ${kind.one}s`
      return { message, fix: nearest(mapped ?? column) }
    }
    if (target.name === 'id' && kind.does !== 'create') return { target }
    if (target.readOnly && mapped !== undefined)
      return { message: `maps to ${mapped}, which only the service writes` }
    if (target.readOnly) return { ignored: 'only the service writes it' }
    const isSelected = selected === undefined || namesOf(target).some((name) => selected.has(name))
    return isSelected ? { target } : { ignored: 'it is not listed in --columns' }
  }
}

function fieldsByName({ kind, header, mapping }: ColumnMappingOptions) {
  const names = [...knownNames(kind), ...header.filter((name) => name !== '')]
  const pairs = [...names.map((name) => [name, name] as const), ...Object.entries(mapping.columns ?? {})]
  return new Map(
    pairs.map(([theirs, ours]) => {
      const name = comparableName(theirs)
      return [name, toTarget(kind, ours ?? name)?.name ?? name]
    }),
  )
}

/** The number of cells in a row that name mappable columns. */
export function countMapped({ kind, mapping }: ColumnMappingOptions, cells: readonly string[]): number {
  const mapped = new Set(Object.keys(mapping.columns ?? {}).map(comparableName))
  return cells.filter((cell) => mapped.has(comparableName(cell)) || toTarget(kind, cell) !== undefined).length
}

/** Finds fields with more than one source, column or constant, and lists given in more than one way. */
function findDuplicates(sources: readonly { target: FieldTarget; column: string }[]): Problem[] {
  const byName = new Map<string, string>()
  const ways = new Map<string, { way: string; column: string }>()
  return sources.flatMap(({ target: { name, path }, column }) => {
    const before = byName.get(name)
    if (before !== undefined)
      return [aboutColumn(column, { message: `maps to ${name}, and so does ${before}` })]
    byName.set(name, column)
    const list = String(path[0])
    const way = path.length === 1 ? 'one cell' : path[1] === eachRow ? 'a row each' : 'numbers'
    const other = ways.get(list)
    ways.set(list, { way, column })
    if (other === undefined || other.way === way) return []
    return [
      aboutColumn(column, { message: `gives ${list} in another way than ${other.column}. Use one way only` }),
    ]
  })
}

/** Finds required fields without a column. `others`: the columns that may be meant. */
function findMissing(kind: ImportKind, given: readonly FieldTarget[], others: readonly string[]): Problem[] {
  const fields = new Set(given.map(({ path }) => path[0]))
  const problems = requiredFields(kind)
    .filter((key) => !fields.has(key))
    .map((key) =>
      aboutColumn(key, {
        message: `is required for every ${kind.one}, but no column has it. Add the column, or map one to it with --map`,
        fix: nearestName(key, others),
      }),
    )
  if (kind.does === 'update' && given.every(({ name }) => name === 'id'))
    problems.push(
      aboutColumn('id', { message: 'is the only column that is read, so there is nothing to change' }),
    )
  return problems
}

/** Finds names in `--columns` that the file does not have. */
function findUnknown(
  columns: readonly string[],
  given: readonly FieldTarget[],
  nearest: NearestName,
): Problem[] {
  const named = new Set(given.flatMap(namesOf))
  return columns
    .filter((name) => !named.has(comparableName(name)))
    .map((name) =>
      aboutColumn(`--columns ${name}`, { message: 'is not a column of the file', fix: nearest(name) }),
    )
}

/** A file with every column of an export needs `--columns`. */
function refuseWholeExport(kind: ImportKind, header: readonly string[]): Problem[] {
  if (kind.does !== 'update') return []
  const present = new Set(header.map(comparableName))
  const cells = fieldsOf(kind.schema).filter(([, meta]) => meta.kind !== 'list')
  const writable = cells.flatMap(([key, { write }]) => (write === 'readOnly' ? [] : [key]))
  const hasReadOnly = cells.some(
    ([key, { write }]) => write === 'readOnly' && key !== 'id' && present.has(key),
  )
  if (!hasReadOnly || !writable.every((key) => present.has(key))) return []
  const message = `has every column of an export, so all of them would be written back. Select the fields to send with --columns: ${writable.join(', ')}`
  return [aboutColumn('the header', { message })]
}

/**
 * A CSV header of a kind with one example row, in the notation of a locale. With a decimal comma, the
 * delimiter is `;`, as in that locale's spreadsheets, and a byte order mark marks the text as UTF-8.
 * @throws {InvalidMapping} the locale is unknown
 */
export function template({
  kind: name,
  locale = 'en-US',
}: {
  kind: ImportKindName
  locale?: string
}): string {
  const kind = importKinds[name]
  const { decimal, dates } = conventionsOf(locale)
  const cells = Object.entries(kind.example).map(([field, value]) => {
    const type = toTarget(kind, field)?.meta.kind
    if (type === 'date') return writeDate(value, dates)
    return type === 'decimal' || type === 'integer' ? withMark(value, decimal) : value
  })
  const isComma = decimal === ','
  return stringify([Object.keys(kind.example), cells], { delimiter: isComma ? ';' : ',', bom: isComma })
}
