import { createCellReader } from './cells/cell.ts'
import { comparableName, readableName } from './cells/invisible.ts'
import type { Conventions } from './cells/locale.ts'
import type { DecimalMark } from './cells/numbers.ts'
import { openTable, readTable, type Table } from './csv/table.ts'
import { MappingError } from './errors.ts'
import { shownName } from './file-name.ts'
import { groupRows, type Unit } from './group-rows.ts'
import { type ImportKind, type ImportKindName, importKinds } from './kinds.ts'
import { type Column, createColumn } from './mapping/column.ts'
import { type ColumnMapping, countMapped, mapColumns } from './mapping/column-mapping.ts'
import { type Lookup, readLookup } from './mapping/lookup.ts'
import { conventionsIn, type Mapping } from './mapping/mapping.ts'
import { createChangeParser, type ParsedChange } from './parsed-changes.ts'
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
  const constants = readConstants({ kind, columnMapping, conventions, lookups: lookups.byField })
  const parse = createChangeParser({
    kind,
    header,
    columns,
    fields: columnMapping.fields,
    unnamed: columnMapping.unnamed,
    constants: constants.values,
  })
  return {
    kind,
    name: shownName(path),
    table,
    columnMapping,
    columns,
    problems: [...columnMapping.problems, ...lookups.problems, ...constants.problems],
    decimal: () => reader.decimal(),
    changes: async function* () {
      for await (const unit of unitsOf({ path, table, kind, columnMapping })) yield parse(unit)
    },
    doubts: () =>
      [...lookups.byField].flatMap(([field, lookup]) => {
        const fault = lookup.conclude()
        const column = columns.find(({ target }) => target.name === field)?.header ?? `--set ${field}`
        return fault === undefined ? [] : [{ line: fault.row, column, ...fault }]
      }),
  }
}

/**
 * The rows of a file, grouped by change as `openFile` groups them, with cells as text: result files append
 * columns to them.
 */
export async function openUnits({ kind: name, mapping = {}, ...file }: ImportFile): Promise<{
  table: Table
  units: AsyncGenerator<Unit>
}> {
  const kind = importKinds[name]
  const { path } = file
  const table = file.table ?? (await openTable(path, mapping))
  const columnMapping = mapColumns({ ...file, kind, mapping, header: table.header })
  return { table, units: unitsOf({ path, table, kind, columnMapping }) }
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

function unitsOf({
  path,
  table,
  kind,
  columnMapping,
}: {
  path: string
  table: Table
  kind: ImportKind
  columnMapping: ColumnMapping
}): AsyncGenerator<Unit> {
  const places = kind.identifiers
    .map((field) => columnMapping.targets.findIndex((target) => target?.name === field))
    .filter((index) => index !== -1)
  return groupRows({ rows: readTable(path, table), by: columnMapping.grouped ? places : undefined })
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

function readConstants({
  kind,
  columnMapping,
  conventions,
  lookups,
}: {
  kind: ImportKind
  columnMapping: ColumnMapping
  conventions: Conventions
  lookups: ReadonlyMap<string, Lookup>
}) {
  const reader = createCellReader({ conventions })
  const values: { target: Column['target']; value: unknown }[] = []
  const problems: Problem[] = []
  for (const { target, text } of columnMapping.constants) {
    const lookup = lookups.get(target.name)
    const column = createColumn({ kind, header: target.name, index: -1, target, reader, lookup })
    const cell = column.read({ text, row: 1 })
    if (cell === undefined) problems.push(aboutColumn(`--set ${target.name}`, { message: 'is empty' }))
    else if ('value' in cell) values.push({ target, value: cell.value })
    else problems.push(aboutColumn(`--set ${target.name}`, { ...cell.fault, value: text }))
  }
  return { values, problems }
}
