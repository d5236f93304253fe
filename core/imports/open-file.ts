import { basename } from 'node:path'
import { createCellReader } from './cells/cell.ts'
import { type Column, createColumn } from './mapping/columns.ts'
import { detectDialect, type Dialect } from './csv/dialect.ts'
import { isGuarded } from './csv/is-guarded.ts'
import { unguardFormula } from '../tables/formula-guard.ts'
import { createDrafter, type Draft } from './parsed-changes.ts'
import { UnreadableFileError } from './errors.ts'
import { groupRows, type Unit } from './group-rows.ts'
import { type ImportKind, type ImportKindName, importKinds } from './kinds.ts'
import { type Layout } from './mapping/check-columns.ts'
import { toLayout } from './mapping/column-mapping.ts'
import { type LineSource, openLineSource } from './csv/line-source.ts'
import type { Conventions } from './cells/locale.ts'
import { type Lookup, readLookup } from './mapping/lookup.ts'
import { conventionsIn, type Mapping } from './mapping/mapping.ts'
import { aboutColumn, type Problem } from './problems.ts'
import { readRows } from './csv/read-rows.ts'

/** A file to import and how it is to be read; the same for a dry run and a real one. */
export interface ImportFile {
  kind: ImportKindName
  path: string
  mapping?: Mapping
  /** The only columns to send, by the names of our fields; what else the file has is left out. */
  columns?: readonly string[]
  /** A file with the lines of the records: `retention_lines.csv` beside an exported `retentions.csv`. */
  lines?: string
}

export interface OpenFile {
  kind: ImportKind
  name: string
  dialect: Dialect
  header: readonly string[]
  layout: Layout
  columns: readonly Column[]
  /** What is wrong with the file as a whole: its header, its constants, its look-ups. */
  problems: readonly Problem[]
  lines: LineSource | undefined
  drafts(): AsyncGenerator<Draft>
  close(): void
}

/**
 * Looks at a file's header and makes ready to read its rows, which leaves memory flat. To be closed.
 * @throws {UnreadableFileError} where it is no table with a header and a row
 * @throws {MappingError} where a locale is unknown or a look-up file can't be used
 */
export async function openFile({
  kind: name,
  path,
  mapping = {},
  ...options
}: ImportFile): Promise<OpenFile> {
  const kind = importKinds[name]
  const conventions = conventionsIn(mapping)
  const { dialect, guarded, header } = await readHeader(path)
  const reader = createCellReader({ conventions })
  const layout = toLayout({ ...options, kind, header, mapping, hasLines: options.lines !== undefined })
  const lookups = await readLookups({ mapping, layout })
  const join = options.lines === undefined ? -1 : layout.targets.findIndex((target) => target?.name === 'id')
  const columns = layout.targets.flatMap((target, index): Column[] => {
    if (target === undefined || index === join) return []
    const lookup = lookups.byField.get(target.name)
    return [createColumn({ kind, header: header[index] ?? '', index, target, reader, lookup })]
  })
  const constants = readConstants({ kind, layout, conventions, lookups: lookups.byField })
  const lines = await openLines({ kind, path: options.lines, conventions })
  const draft = createDrafter({
    kind,
    header,
    columns,
    nameless: layout.nameless,
    constants: constants.values,
    lines:
      lines !== undefined && join !== -1 && lines.problems.length === 0 ? { source: lines, join } : undefined,
  })
  return {
    kind,
    name: basename(path),
    dialect,
    header,
    layout,
    columns,
    problems: [...layout.problems, ...lookups.problems, ...constants.problems, ...(lines?.problems ?? [])],
    lines,
    drafts: async function* () {
      for await (const unit of unitsOf({ path, dialect, guarded, kind, layout })) yield draft(unit)
    },
    close: () => lines?.close(),
  }
}

/**
 * The rows of a file as it will be drafted: what results are merged with. Takes the header off and groups the rows
 * of one change, and reads no cell; takes a guard against formulas off those that have one.
 */
export async function openUnits({ kind: name, path, mapping = {}, ...options }: ImportFile): Promise<{
  dialect: Dialect
  header: readonly string[]
  units: AsyncGenerator<Unit>
}> {
  const kind = importKinds[name]
  const { dialect, guarded, header } = await readHeader(path)
  const layout = toLayout({ ...options, kind, header, mapping, hasLines: options.lines !== undefined })
  return { dialect, header, units: unitsOf({ path, dialect, guarded, kind, layout }) }
}

/** Far more than fields and lines of one change; each column is looked up among all of them. */
const mostColumns = 2_000

async function readHeader(path: string): Promise<{ dialect: Dialect; guarded: boolean; header: string[] }> {
  const dialect = await detectDialect(path)
  let header: string[] | undefined
  for await (const { cells } of readRows({ path, dialect })) {
    if (header !== undefined) {
      const guarded = isGuarded(dialect, header)
      return { dialect, guarded, header: guarded ? header.map(unguardFormula) : header }
    }
    if (cells.length > mostColumns)
      throw new UnreadableFileError(
        `${basename(path)} has ${cells.length.toLocaleString('en')} columns, and at most ${mostColumns.toLocaleString('en')} are read. Remove those that are not to be imported.`,
      )
    header = cells
  }
  throw new UnreadableFileError(`${basename(path)} has a header only. It needs at least one row below it.`)
}

function unitsOf({
  path,
  dialect,
  guarded,
  kind,
  layout,
}: {
  path: string
  dialect: Dialect
  guarded: boolean
  kind: ImportKind
  layout: Layout
}): AsyncGenerator<Unit> {
  const rows = async function* () {
    let isHeader = true
    for await (const row of readRows({ path, dialect, guarded })) {
      if (!isHeader) yield row
      isHeader = false
    }
  }
  return groupRows({ rows: rows(), by: groupedBy({ kind, layout }) })
}

function groupedBy({ kind, layout }: { kind: ImportKind; layout: Layout }): number[] | undefined {
  if (!layout.grouped) return undefined
  return kind.identifiers
    .map((field) => layout.targets.findIndex((target) => target?.name === field))
    .filter((index) => index !== -1)
}

async function readLookups({ mapping, layout }: { mapping: Mapping; layout: Layout }) {
  const byField = new Map<string, Lookup>()
  const problems: Problem[] = []
  const targets = [...layout.targets, ...layout.constants.map(({ target }) => target)]
  const known = new Map(targets.flatMap((target) => (target === undefined ? [] : [[target.name, target]])))
  for (const [field, path] of Object.entries(mapping.lookups ?? {})) {
    const target = known.get(field.trim().toLowerCase())
    if (target === undefined)
      problems.push(
        aboutColumn(`--lookup ${field}`, { words: 'is a field that no column of the file is for' }),
      )
    else byField.set(target.name, await readLookup(path))
  }
  return { byField, problems }
}

function readConstants({
  kind,
  layout,
  conventions,
  lookups,
}: {
  kind: ImportKind
  layout: Layout
  conventions: Conventions
  lookups: ReadonlyMap<string, Lookup>
}) {
  const reader = createCellReader({ conventions })
  const values: { target: Column['target']; value: unknown }[] = []
  const problems: Problem[] = []
  for (const { target, text } of layout.constants) {
    const lookup = lookups.get(target.name)
    const cell = createColumn({ kind, header: target.name, index: -1, target, reader, lookup }).read({
      text,
      row: 1,
    })
    if (cell === undefined) problems.push(aboutColumn(`--set ${target.name}`, { words: 'is empty' }))
    else if ('value' in cell) values.push({ target, value: cell.value })
    else problems.push(aboutColumn(`--set ${target.name}`, { ...cell.fault, value: text }))
  }
  return { values, problems }
}

async function openLines({
  kind,
  path,
  conventions,
}: {
  kind: ImportKind
  path: string | undefined
  conventions: Conventions
}): Promise<LineSource | undefined> {
  if (path === undefined) return undefined
  if (kind.list === undefined)
    throw new UnreadableFileError(`${basename(path)}: a ${kind.one} has no lines in a file of their own.`)
  const reader = createCellReader({ conventions })
  return openLineSource({ kind, list: kind.list, path, reader })
}
