import { shell } from '../../runs/view/shell.ts'
import { createNearestName, nearestName } from '../../tables/nearest-name.ts'
import { comparableName, readableName } from '../cells/invisible.ts'
import { resultColumns } from '../csv/table.ts'
import type { ImportKind } from '../kinds.ts'
import { aboutColumn, type Problem } from '../problems.ts'
import { checkColumns, findDuplicates, findMissing } from './check-columns.ts'
import { eachRow, type FieldTarget, knownNames, namesOf, toTarget } from './field-target.ts'
import type { Mapping } from './mapping.ts'

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
  constants: readonly Constant[]
  /** Consecutive rows may form one change. */
  grouped: boolean
  ignored: readonly IgnoredColumn[]
  /** The field of every name that a header of this file may have; an ignored column stands for itself. */
  fields: ReadonlyMap<string, string>
  problems: readonly Problem[]
  /** Indexes of columns without a name, which must be empty. */
  unnamed: readonly number[]
}

interface Constant {
  target: FieldTarget
  text: string
}

export interface IgnoredColumn {
  column: string
  reason: string
}

/** Maps the columns of a header to fields, and collects every problem with them. */
export function mapColumns(options: ColumnMappingOptions): ColumnMapping {
  const { kind, mapping } = options
  const header = options.header.map(readableName)
  const toPlace = createPlacing(options)
  const places = header.map((column, index) => toPlace(column, index + 1))
  const set = Object.entries(mapping.set ?? {}).map(([name, text]) => toConstant(kind, name, text))
  const targets = places.map((place) => ('target' in place ? place.target : undefined))
  const constants = set.filter((constant) => 'target' in constant)
  const faults = [...places, ...set].flatMap((place) => ('problem' in place ? [place.problem] : []))
  const given = [...targets, ...constants.map(({ target }) => target)].filter(
    (target) => target !== undefined,
  )
  return {
    targets,
    constants,
    grouped: given.some(({ path }) => path.includes(eachRow)),
    ignored: places.flatMap((place) => ('ignored' in place ? [place.ignored] : [])),
    fields: fieldsByName({ kind, header, mapping }),
    unnamed: header.flatMap((column, index) => (column === '' ? [index] : [])),
    problems: [
      ...faults,
      ...findDuplicates({ header, targets, constants }),
      ...findMissing({ ...options, header, given, faults }),
      ...checkColumns({ ...options, header, given }),
    ],
  }
}

function fieldsByName({ kind, header, mapping }: Pick<ColumnMappingOptions, 'kind' | 'header' | 'mapping'>) {
  const mapped = Object.entries(mapping.columns ?? {})
  const names = [...knownNames(kind), ...header.filter((name) => name !== '')]
  return new Map(
    [...names.map((name): [string, string] => [name, name]), ...mapped].map(([theirs, ours]) => {
      const name = comparableName(theirs)
      return [name, toTarget({ kind, name: ours ?? name })?.name ?? name]
    }),
  )
}

/** The number of cells in a row that name mappable columns. */
export const countMapped = ({ kind, mapping }: ColumnMappingOptions, cells: readonly string[]): number => {
  const mapped = new Set(Object.keys(mapping.columns ?? {}).map(comparableName))
  return cells.filter(
    (cell) => mapped.has(comparableName(cell)) || toTarget({ kind, name: cell }) !== undefined,
  ).length
}

type Place = { target: FieldTarget } | { ignored: IgnoredColumn } | { problem: Problem } | { unnamed: true }

/** Prepared once for a header: a file may have 2,000 columns, and a mapping as many names. */
function createPlacing({ kind, mapping, columns }: ColumnMappingOptions) {
  const byPlainName = new Map(
    Object.entries(mapping.columns ?? {}).map(([theirs, ours]) => [comparableName(theirs), ours]),
  )
  const selected = columns && new Set(columns.map(comparableName))
  const nearest = createNearestName(() => knownNames(kind))

  return function toPlace(column: string, position: number): Place {
    if (column === '') return { unnamed: true }
    const ignored = (reason: string): Place => ({ ignored: { column, reason } })
    if ((resultColumns as readonly string[]).includes(column)) return ignored('it belongs to a result file')
    // An exact name takes precedence over one that differs in case.
    const isExact = Object.hasOwn(mapping.columns ?? {}, column)
    const mapped = isExact ? mapping.columns?.[column] : byPlainName.get(comparableName(column))
    if (mapped === null) return ignored('it is mapped to nothing')
    const target = toTarget({ kind, name: mapped ?? column })
    if (target === undefined) return unknown(column, position, mapped)
    if (target.name === 'id' && kind.does !== 'create') return { target }
    if (target.readOnly) {
      if (mapped === undefined) return ignored('only the service writes it')
      return { problem: aboutColumn(column, { message: `maps to ${mapped}, which only the service writes` }) }
    }
    const isSelected = selected === undefined || namesOf(target).some((name) => selected.has(name))
    return isSelected ? { target } : ignored('it is not listed in --columns')
  }

  function unknown(column: string, position: number, mapped: string | undefined): Place {
    // Exports have columns such as `_extra` and `_read_at`.
    if (mapped === undefined && (kind.foreign?.includes(column) === true || column.startsWith('_')))
      return { ignored: { column, reason: 'it comes from an export and is not a field' } }
    const message =
      mapped === undefined
        ? `is not a field of ${kind.one}s. Map it with ${shell`--map ${`${column}=...`}`}, or ignore it with ${shell`--map ${`${column}=`}`}`
        : `maps to ${mapped}, which is not a field of ${kind.one}s`
    return { problem: aboutColumn(column, { message, fix: nearest(mapped ?? column), position }) }
  }
}

function toConstant(kind: ImportKind, name: string, text: string): Constant | { problem: Problem } {
  const target = toTarget({ kind, name })
  const problem = (message: string, fix?: string) => ({
    problem: aboutColumn(`--set ${name}`, { message, fix }),
  })
  if (target === undefined)
    return problem(`is not a field of ${kind.one}s`, nearestName(name, knownNames(kind)))
  return target.readOnly ? problem('is a field that only the service writes') : { target, text }
}
