import { fieldsOf } from '../../billing/resources/fields.ts'
import { createNearestName, nearestName } from '../../tables/nearest-name.ts'
import { comparableName } from '../cells/invisible.ts'
import { type ImportKind, requiredFields } from '../kinds.ts'
import { aboutColumn, type Problem } from '../problems.ts'
import { eachRow, type FieldTarget, knownNames, namesOf } from './field-target.ts'

/** Finds fields with more than one source, column or constant, and lists given in more than one way. */
export function findDuplicates({
  header,
  targets,
  constants,
}: {
  header: readonly string[]
  targets: readonly (FieldTarget | undefined)[]
  constants: readonly { target: FieldTarget }[]
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
      return [aboutColumn(column, { message: `maps to ${target.name}, and so does ${before}` })]
    byName.set(target.name, column)
    const list = String(target.path[0])
    const way = target.path.length === 1 ? 'one cell' : target.path[1] === eachRow ? 'a row each' : 'numbers'
    const other = ways.get(list)
    ways.set(list, { way, column })
    if (other === undefined || other.way === way) return []
    return [
      aboutColumn(column, { message: `gives ${list} in another way than ${other.column}. Use one way only` }),
    ]
  })
}

interface Header {
  kind: ImportKind
  header: readonly string[]
  /** The fields that columns and constants set. */
  given: readonly FieldTarget[]
}

export function findMissing({
  kind,
  header,
  given,
  faults,
}: Header & { faults: readonly Problem[] }): Problem[] {
  const fields = new Set(given.map(({ path }) => path[0]))
  const missing = requiredFields(kind).filter((key) => !fields.has(key))
  const unmapped = faults.map(({ column }) => column)
  const problems = missing.map((key) =>
    aboutColumn(key, {
      message: `is required for every ${kind.one}, but no column has it. Add the column, or map one to it with --map`,
      fix: nearestName(key, unmapped.length > 0 ? unmapped : header),
    }),
  )
  if (kind.does === 'update' && given.every(({ name }) => name === 'id'))
    problems.push(
      aboutColumn('id', { message: 'is the only column that is read, so there is nothing to change' }),
    )
  return problems
}

/**
 * Checks that `--columns` names fields of the file. A file with every column of an export needs the option.
 */
export function checkColumns({
  kind,
  header,
  given,
  columns,
}: Header & { columns?: readonly string[] | undefined }): Problem[] {
  if (columns !== undefined) {
    const nearest = createNearestName(() => knownNames(kind))
    const named = new Set(given.flatMap(namesOf))
    return columns
      .filter((name) => !named.has(comparableName(name)))
      .map((name) =>
        aboutColumn(`--columns ${name}`, { message: 'is not a column of the file', fix: nearest(name) }),
      )
  }
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
