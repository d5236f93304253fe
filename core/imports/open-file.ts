import { createCellReader } from './cells/cell.ts'
import { comparableName, readableName } from './cells/invisible.ts'
import type { DecimalMark } from './cells/numbers.ts'
import type { SourceRow } from './csv/scanner.ts'
import { openTable, readTable, type Table } from './csv/table.ts'
import { MappingError } from './errors.ts'
import { shownName } from './source-file.ts'
import { type ImportKind, type ImportKindName, importKinds } from './kinds.ts'
import { type Column, createColumn } from './mapping/column.ts'
import { type ColumnMapping, countMapped, mapColumns } from './mapping/column-mapping.ts'
import { type Lookup, readLookup } from './mapping/lookup.ts'
import { conventionsIn, type Mapping } from './mapping/mapping.ts'
import { createChangeParser, type ParsedChange, type Unit } from './parsed-changes.ts'
import { aboutColumn, type Problem } from './problems.ts'

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
  /** After all changes: what only a whole column shows. */
  doubts(): Problem[]
}

/**
 * Reads the header of a file and prepares to stream its rows in constant memory.
 * @throws {UnreadableFileError} it is not a table with a header and a row
 * @throws {MappingError} a locale is unknown or a lookup file cannot be used
 */
export async function openFile({ kind: name, mapping = {}, ...file }: ImportFile): Promise<OpenFile> {
  const kind = importKinds[name]
  const { path } = file
  const conventions = conventionsIn(mapping)
  const table = file.table ?? (await openTable(path, mapping))
  const { header } = table
  const reader = createCellReader({ conventions })
  const asWritten = mapping.encoding !== undefined
  const columnMapping = mapColumns({ ...file, kind, mapping, header })
  if (columnMapping.problems.length > 0) await refuseTitle({ ...file, kind, mapping, table })
  const lookups = await readLookups({ mapping, columnMapping })
  const columns = columnMapping.targets.flatMap((target, index): Column[] => {
    if (target === undefined) return []
    const lookup = lookups.byField.get(target.name)
    return [
      createColumn({
        kind,
        header: readableName(header[index] ?? ''),
        index,
        target,
        reader,
        lookup,
        asWritten,
      }),
    ]
  })
  const constants = columnMapping.constants.map(({ target, text }) => {
    const own = { kind, header: target.name, index: -1, target, reader: createCellReader({ conventions }) }
    const cell = createColumn({ ...own, lookup: lookups.byField.get(target.name) }).read({ text, row: 1 })
    const problem = (fault: Parameters<typeof aboutColumn>[1]) => ({
      problem: aboutColumn(`--set ${target.name}`, fault),
    })
    if (cell === undefined) return problem({ message: 'is empty' })
    return 'value' in cell ? { target, value: cell.value } : problem({ ...cell.fault, value: text })
  })
  const parse = createChangeParser({
    kind,
    header,
    columns,
    fields: columnMapping.fields,
    unnamed: columnMapping.unnamed,
    constants: constants.filter((constant) => 'value' in constant),
  })
  const by = kind.identifiers
    .map((field) => columnMapping.targets.findIndex((target) => target?.name === field))
    .filter((index) => index !== -1)
  const units = () => groupRows(readTable(path, table), columnMapping.grouped ? by : undefined)
  return {
    kind,
    name: shownName(path),
    table,
    columnMapping,
    columns,
    problems: [
      ...columnMapping.problems,
      ...lookups.problems,
      ...constants.flatMap((constant) => ('problem' in constant ? [constant.problem] : [])),
    ],
    decimal: () => reader.decimal(),
    units,
    changes: async function* () {
      for await (const unit of units()) yield parse(unit)
    },
    doubts: () =>
      [...lookups.byField].flatMap(([field, lookup]) => {
        const fault = lookup.conclude()
        const column = columns.find(({ target }) => target.name === field)?.header ?? `--set ${field}`
        return fault === undefined ? [] : [{ line: fault.row, column, ...fault }]
      }),
  }
}

type Opening = Omit<ImportFile, 'kind' | 'mapping'> & { kind: ImportKind; mapping: Mapping }

/** Rows in which to search for a header below a title. */
const mostTitleRows = 20

/** @throws {MappingError} if a later row has the names of the columns */
async function refuseTitle({ path, table, ...file }: Opening & { table: Table }): Promise<void> {
  const options = { ...file, header: table.header }
  let best = { row: table.headerRow, names: Math.max(1, countMapped(options, table.header)) }
  for await (const { row, cells } of readTable(path, table)) {
    if (row > table.headerRow + mostTitleRows) break
    const names = countMapped(options, cells)
    if (names > best.names) best = { row, names }
  }
  if (best.row === table.headerRow) return
  throw new MappingError(
    `${shownName(path)}: row ${table.headerRow} is not the header. The header seems to be in row ${best.row}; use --header-row ${best.row}.`,
  )
}

/**
 * Groups consecutive rows with equal cells in the columns `by`; without them, every row is its own change. Rows whose
 * `by` cells are all empty stay single.
 */
async function* groupRows(rows: AsyncIterable<SourceRow>, by: readonly number[] = []): AsyncGenerator<Unit> {
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

async function readLookups({ mapping, columnMapping }: { mapping: Mapping; columnMapping: ColumnMapping }) {
  const { targets, constants } = columnMapping
  const byField = new Map<string, Lookup>()
  const problems: Problem[] = []
  const given = [...targets, ...constants.map(({ target }) => target)]
  const names = new Set(given.map((target) => target?.name))
  for (const [field, path] of Object.entries(mapping.lookups ?? {})) {
    const name = comparableName(field)
    if (names.has(name)) byField.set(name, await readLookup(path, mapping))
    else problems.push(aboutColumn(`--lookup ${field}`, { message: 'is for a field that no column has' }))
  }
  return { byField, problems }
}
