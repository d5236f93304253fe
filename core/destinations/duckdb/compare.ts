import { join } from 'node:path'
import { caveatOf, isOfAll } from '../absence.ts'
import type { Comparison } from '../destination.ts'
import { runColumns, toWarehouseTable, type WarehouseTable } from '../layout.ts'
import type { Manifest, PublishedTable } from '../manifest/manifest.ts'
import { instant, literal, quote } from '../sql.ts'
import { findExport } from './exports.ts'
import type { DuckDb, Row } from './open.ts'
import { toCsv, toQuery } from './rows.ts'
import { describe } from './tables.ts'

/** The longest row that can be compared, in bytes: the files of an export are not in parts. */
const longestRow = 128_000_000

/** In MB, for buffers of that size. A command of its own has it. */
export const comparingMemory = 1_000

/**
 * Compares the tables of a warehouse with the CSV files of an export, which are copied into session tables: every row of the
 * export is there as this run wrote it, or another run has written its record since; the run has no other rows; and after a
 * proven export of the whole list, no record that it lacks is unmarked.
 */
export async function compareExport(
  db: DuckDb,
  { manifest, folder, where }: { manifest: Manifest; folder: string; where: string },
): Promise<Comparison> {
  const refusal = await findRefusal(db, manifest, where)
  if (refusal.length > 0) return { where, problems: refusal, tables: [] }
  const problems: string[] = []
  const tables: Comparison['tables'] = []
  for (const table of manifest.tables) {
    const rows = toWarehouseTable(table)
    await stageExported(db, { folder, table, rows })
    const isOfRun = `_run_id = ${literal(manifest.run)}`
    const [counted = {}] = await db.all(`select count(*) filter (where ${isOfRun}) as compared,
      count(*) filter (where not ${isOfRun}) as newer from ${quote(table.name)}`)
    const { compared, newer } = counted
    tables.push({ name: table.name, compared: Number(compared), newer: Number(newer) })
    problems.push(...(await findDifferences(db, { manifest, rows })))
  }
  return { where, tables, problems: [...problems, ...(await findUnmarked(db, manifest))] }
}

/** Why the tables can't be compared: there are none, they belong to another owner, or this run is not in them. */
async function findRefusal(db: DuckDb, manifest: Manifest, where: string): Promise<string[]> {
  const tables = await describe(db)
  const missing = ['_warehouse', ...manifest.tables.map(({ name }) => name)].filter(
    (name) => !tables.has(name),
  )
  if (missing.length > 0) return [`${where} has no table ${missing.join(', ')}.`]
  const [stamp = {}] = await db.all('select workspace, mode from _warehouse')
  const mode = manifest.testMode ? 'test' : 'live'
  if (stamp['workspace'] !== manifest.workspace || stamp['mode'] !== mode)
    return [
      `${where} is of workspace ${stamp['workspace']} (${stamp['mode']}), the export of ${manifest.workspace} (${mode}).`,
    ]
  // Without its export row, every row would count as another run's and only be checked for presence.
  if ((await findExport(db, manifest)) === undefined)
    return [
      `${where} has no export of ${manifest.resource} by the run ${manifest.run}: publish it there before they are compared.`,
    ]
  return manifest.tables.flatMap((table) => {
    const there = tables.get(table.name)
    const lacking = [...toWarehouseTable(table).columns, ...runColumns]
      .map(({ name }) => name)
      .filter((name) => there?.has(name) !== true)
    return lacking.length === 0 ? [] : [`${table.name} has no column ${lacking.join(', ')}.`]
  })
}

const exported = '_exported'

async function stageExported(
  db: DuckDb,
  { folder, table, rows }: { folder: string; table: PublishedTable; rows: WarehouseTable },
): Promise<void> {
  const files = table.files.map(({ path, bytes }) => ({ path: join(folder, path), bytes }))
  const size = Math.min(longestRow, 1 + Math.max(0, ...files.map(({ bytes }) => bytes)))
  const csv = await toCsv(db, { table: rows, files, size, hasHeader: true })
  await db.run(`create or replace temporary table ${exported} as ${toQuery(rows, csv)}`)
}

const mostNamed = 3

/** Compares the rows of a run with those of its export both ways, and names those that differ. */
async function findDifferences(
  db: DuckDb,
  { manifest, rows: { table, columns } }: { manifest: Manifest; rows: WarehouseTable },
): Promise<string[]> {
  const main = manifest.tables[0]!
  const keys = table.key.map(quote)
  const isOfRun = `_run_id = ${literal(manifest.run)}`
  const differing = columns
    .filter(({ name }) => !table.key.includes(name))
    .map(
      ({ name }) => `case when e.${quote(name)} is distinct from w.${quote(name)} then ${literal(name)} end`,
    )
  // Another run that wrote a record has replaced its child rows along with it.
  const rows = await db.all(`with w as (from ${quote(table.name)} where ${isOfRun}),
    e as (from ${exported} e where not exists (
      from ${quote(main.name)} m where m.${quote(main.key[0]!)} = e.${keys[0]} and not ${isOfRun})),
    compared as (select ${toKey(keys.map((key) => `coalesce(e.${key}, w.${key})`))} as key,
      case when w.${keys[0]} is null then 'lacked' when e.${keys[0]} is null then 'extra'
        else nullif(concat_ws(', ', ${differing.join(', ')}), '') end as problem
      from e full join w on ${keys.map((key) => `e.${key} = w.${key}`).join(' and ')})
    select problem, count(*) as rows, array_to_string(min(key, ${mostNamed}), '; ') as keys
    from compared where problem is not null group by problem order by problem`)
  return rows.map((row) => describeDifference(table.name, row))
}

/** Begins with a `=`, because DuckDB's driver strips a byte order mark that a text begins with. */
const toKey = (columns: readonly string[]) => `'=' || concat_ws(',', ${columns.join(', ')})`

function describeDifference(table: string, { problem, rows, keys }: Row): string {
  const counted = rows === '1' ? '1 row' : `${rows} rows`
  const named = `${keys!.slice(1).replaceAll('; =', '; ')}${Number(rows) > mostNamed ? '; ...' : ''}`
  if (problem === 'lacked') return `${table} lacks ${counted} of the export: ${named}.`
  if (problem === 'extra') return `${table} has ${counted} under this run that the export lacks: ${named}.`
  return `${table} does not hold what was exported in ${problem} of ${counted}: ${named}.`
}

/** Finds records that an export of the whole list proves gone but that are not marked. */
async function findUnmarked(db: DuckDb, manifest: Manifest): Promise<string[]> {
  const { completeThrough, startedAt } = manifest
  const main = manifest.tables[0]!
  const hasCreated = main.columns.some(({ name, kind }) => name === 'created' && kind === 'timestamp')
  if (!isOfAll(manifest) || caveatOf(manifest) !== undefined || completeThrough === null || !hasCreated)
    return []
  const rows = await db.all(`select ${toKey(main.key.map(quote))} as key from ${quote(main.name)}
    where _deleted_at is null and _run_id <> ${literal(manifest.run)} and _read_at < ${instant(startedAt)}
      and created <= ${instant(completeThrough)} order by 1 limit ${mostNamed + 1}`)
  if (rows.length === 0) return []
  const first = rows.slice(0, mostNamed).map((row) => row['key']!.slice(1))
  return [
    `${main.name} has records that the export lacks and that are not marked as deleted: ${first.join(', ')}${rows.length > mostNamed ? ', ...' : ''}.`,
  ]
}
