import { createCellReader } from './cells/cell.ts'
import { comparableName, readableName } from './cells/refused.ts'
import type { DecimalMark } from './cells/notation.ts'
import type { SourceRow } from './csv/rows.ts'
import { isResultFile, openTable, readTable, type Table } from './csv/table.ts'
import { InvalidMapping } from './errors.ts'
import { type ImportKind, type ImportKindName, importKinds } from './kinds.ts'
import { type ColumnMapping, type ColumnMappingOptions, countMapped, mapColumns } from './mapping/columns.ts'
import { type Lookup, readLookup } from './mapping/lookup.ts'
import { conventionsIn, type Mapping } from './mapping/mapping.ts'
import {
  type Column,
  createChangeParser,
  createColumn,
  type ParsedChange,
  type Unit,
} from './parsed-changes.ts'
import { aboutColumn, type Problem } from './problems.ts'
import { shownName } from './source-file.ts'

/** A file to import and how to read it; the same for a dry run and an import. */
export interface ImportFile {
  kind: ImportKindName
  path: string
  mapping?: Mapping | undefined
  /** The only columns to send, by the names of our fields. */
  columns?: readonly string[] | undefined
  /** From an earlier read of the same file, which is then not examined again. */
  table?: Table | undefined
}

export interface OpenFile {
  kind: ImportKind
  name: string
  table: Table
  columnMapping: ColumnMapping
  columns: readonly Column[]
  /** Problems of the file as a whole: its header, constants and lookups. */
  problems: readonly Problem[]
  /** The file's decimal mark, as far as its options or the cells read so far show it. */
  decimal(): DecimalMark | undefined
  /** The rows of each change, as they are. */
  units(): AsyncGenerator<Unit>
  changes(): AsyncGenerator<ParsedChange>
}

/**
 * Reads the header of a file and prepares to stream its rows in constant memory.
 * @throws {InvalidFile} it is not a table with a header and a row
 * @throws {InvalidMapping} a locale is unknown or a lookup file cannot be used
 */
export async function openFile(file: ImportFile): Promise<OpenFile> {
  const { path, mapping = {}, columns: selected } = file
  const kind = importKinds[file.kind]
  const table = file.table ?? (await openTable(path, mapping))
  const { header } = table
  const reader = createCellReader(conventionsIn(mapping))
  const options = { kind, mapping, header, columns: selected }
  const columnMapping = mapColumns(options)
  const { targets, fields, unnamed, grouped } = columnMapping
  const problems: Problem[] = [...columnMapping.problems]
  if (problems.length > 0) await refuseTitle(path, table, options)

  const given = [...targets, ...columnMapping.constants.map(({ target }) => target)]
  const lookups = new Map<string, Lookup>()
  for (const [field, lookupPath] of Object.entries(mapping.lookups ?? {})) {
    const name = comparableName(field)
    if (given.some((target) => target?.name === name))
      lookups.set(name, await readLookup(lookupPath, mapping))
    else problems.push(aboutColumn(`--lookup ${field}`, { message: 'is for a field that no column has' }))
  }
  const asWritten = mapping.encoding !== undefined
  const columns = targets.flatMap((target, index): Column[] => {
    if (target === undefined) return []
    const lookup = lookups.get(target.name)
    const name = readableName(header[index] ?? '')
    return [createColumn({ kind, header: name, index, target, reader, lookup, asWritten })]
  })
  const constants = columnMapping.constants.flatMap(({ target, text }) => {
    const own = { kind, header: target.name, index: -1, target, lookup: lookups.get(target.name) }
    // It says nothing of how the cells are written.
    const cell = createColumn({ ...own, reader: createCellReader(conventionsIn(mapping)) }).read({
      text,
      row: 1,
    })
    if (cell !== undefined && 'value' in cell) return [{ target, value: cell.value }]
    const fault = cell === undefined ? { message: 'is empty' } : { ...cell.fault, value: text }
    problems.push(aboutColumn(`--set ${target.name}`, fault))
    return []
  })
  const parse = createChangeParser({ kind, header, columns, fields, unnamed, constants })
  const identifiers = kind.identifiers
    .map((field) => targets.findIndex((target) => target?.name === field))
    .filter((index) => index !== -1)
  // Changes that were apart are next to each other in a result file. All rows of one have its number there.
  const numbers = isResultFile(header) ? [header.findIndex((name) => readableName(name) === '_row')] : []
  const units = () => groupRows(readTable(path, table), grouped ? [...identifiers, ...numbers] : [])
  return {
    kind,
    name: shownName(path),
    table,
    columnMapping,
    columns,
    problems: problems.map((problem) => ({ ...problem, row: table.headerRow })),
    decimal: () => reader.decimal(),
    units,
    changes: async function* () {
      for await (const unit of units()) yield parse(unit)
    },
  }
}

/** Rows in which to search for a header below a title. */
const mostTitleRows = 20

/** @throws {InvalidMapping} if a later row has the names of the columns */
async function refuseTitle(path: string, table: Table, options: ColumnMappingOptions): Promise<void> {
  let best = { row: table.headerRow, names: Math.max(1, countMapped(options, table.header)) }
  for await (const { row, cells } of readTable(path, table)) {
    if (row > table.headerRow + mostTitleRows) break
    const names = countMapped(options, cells)
    if (names > best.names) best = { row, names }
  }
  if (best.row === table.headerRow) return
  throw new InvalidMapping(
    `${shownName(path)}: row ${table.headerRow} is not the header. The header seems to be in row ${best.row}; use --header-row ${best.row}.`,
  )
}

/**
 * Groups consecutive rows with equal cells in the columns `by`; without them, every row is its own change. Rows whose
 * `by` cells are all empty stay single.
 */
async function* groupRows(rows: AsyncIterable<SourceRow>, by: readonly number[]): AsyncGenerator<Unit> {
  let group: Unit | undefined
  let groupKey = ''
  for await (const row of rows) {
    const cells = by.map((index) => (row.cells[index] ?? '').trim())
    const key = cells.every((cell) => cell === '') ? '' : JSON.stringify(cells)
    if (group !== undefined && key !== '' && key === groupKey) {
      group.push(row)
      continue
    }
    if (group !== undefined) yield group
    group = [row]
    groupKey = key
  }
  if (group !== undefined) yield group
}
