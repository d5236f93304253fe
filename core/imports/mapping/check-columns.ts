import { fieldsOf } from '../../tables/field-meta.ts'
import { createNearestName, nearestName } from '../../tables/nearest-name.ts'
import { eachRow, type FieldTarget, knownNames, namesOf } from './field-target.ts'
import { aboutColumn, type Problem } from '../problems.ts'
import type { ImportKind } from '../kinds.ts'
import type { Mapping } from './mapping.ts'

/** Every field has one source: one column or one constant, and a list is given in one way. */
export function findDoubles({
  header,
  targets,
  constants,
}: {
  header: readonly string[]
  targets: Layout['targets']
  constants: Layout['constants']
}): Problem[] {
  const sources = [
    ...targets.map((target, index) => ({ target, column: header[index] ?? '' })),
    ...constants.map(({ target }) => ({ target, column: `--set ${target.name}` })),
  ]
  const byName = new Map<string, string>()
  const ways = new Map<string, { way: string; column: string }>()
  return sources.flatMap(({ target, column }) => {
    if (target === undefined) return []
    const before = byName.get(target.name)
    if (before !== undefined)
      return [aboutColumn(column, { words: `stands for ${target.name}, and so does ${before}` })]
    byName.set(target.name, column)
    const list = String(target.path[0])
    const way = target.path.length === 1 ? 'one cell' : target.path[1] === eachRow ? 'a row each' : 'numbers'
    const other = ways.get(list)
    ways.set(list, { way, column })
    return other === undefined || other.way === way
      ? []
      : [aboutColumn(column, { words: `gives ${list} in another way than ${other.column}: keep one` })]
  })
}

export function findMissing({
  kind,
  header,
  hasLines,
  given,
  faults,
}: LayoutOptions & { given: readonly FieldTarget[]; faults: readonly Problem[] }): Problem[] {
  const tops = new Set(given.map(({ path }) => path[0]))
  const needed =
    kind.does === 'create'
      ? fieldsOf(kind.schema).flatMap(([key, meta]) => (meta.write === 'required' ? [key] : []))
      : ['id']
  if (hasLines === true) needed.push('id')
  const missing = needed.filter((key) => !tops.has(key) && !(key === kind.list && hasLines === true))
  const unplaced = faults.map(({ column }) => column)
  const problems = missing.map((key) => {
    const near = nearestName(key, unplaced.length > 0 ? unplaced : header)
    const words = `is needed for every ${kind.one}, and no column gives it. Add the column, or say which it is with --map`
    return aboutColumn(key, { words, fix: near })
  })
  const gives = given.some(({ name }) => name !== 'id')
  if (kind.does === 'update' && !gives)
    problems.push(
      aboutColumn('id', { words: `is the only column that is read, so there is nothing to change` }),
    )
  return problems
}

/** `--columns` names fields of the file; and a file with everything an export has needs it. */
export function checkColumns(
  { kind, header, columns }: LayoutOptions,
  given: readonly FieldTarget[],
): Problem[] {
  if (columns !== undefined) {
    const nearest = createNearestName(() => knownNames(kind))
    const named = new Set(given.flatMap(namesOf))
    return columns
      .filter((name) => !named.has(name.trim().toLowerCase()))
      .map((name) =>
        aboutColumn(`--columns ${name}`, {
          words: 'is no column of the file',
          fix: nearest(name),
        }),
      )
  }
  if (kind.does !== 'update') return []
  const held = new Set(header.map((column) => column.trim().toLowerCase()))
  const cells = fieldsOf(kind.schema).filter(([, meta]) => meta.kind !== 'list')
  const writable = cells.flatMap(([key, { write }]) => (write === 'readOnly' ? [] : [key]))
  const hasReadOnly = cells.some(([key, { write }]) => write === 'readOnly' && key !== 'id' && held.has(key))
  if (!hasReadOnly || !writable.every((key) => held.has(key))) return []
  const words = `has every column of an export, and would write all of them back. Name those to send with --columns: ${writable.join(', ')}`
  return [aboutColumn('the header', { words })]
}

/** What each column of a file is for. */
export interface Layout {
  /** By place in the header; undefined where the column is left out. */
  targets: readonly (FieldTarget | undefined)[]
  /** Fields that are the same in every row, with their text. */
  constants: readonly { target: FieldTarget; text: string }[]
  /** Whether consecutive rows may be one change. */
  grouped: boolean
  ignored: readonly { column: string; why: string }[]
  problems: readonly Problem[]
  /** Columns without a name: nothing may stand in them. */
  nameless: readonly number[]
}

export interface LayoutOptions {
  kind: ImportKind
  header: readonly string[]
  mapping: Mapping
  /** For updates: the only fields to send. */
  columns?: readonly string[] | undefined
  /** The lines come from a file of their own. */
  hasLines?: boolean
}
