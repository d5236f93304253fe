import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { caveatOf, isOfAll } from '../absence.ts'
import type { Comparison } from '../destination.ts'
import { runColumns, toWarehouseTable, type WarehouseTable } from '../layout.ts'
import type { Manifest } from '../manifest/manifest.ts'
import { literal, quote, stagedName } from '../sql.ts'
import { absent, boundsOf } from './deletes.ts'
import { findExport, ownerTable } from './exports-table.ts'
import { valueOf } from './merge.ts'
import type { Row, Session } from './session.ts'
import { copyInto, createStaged } from './stage.ts'
import { findTables, typeOf } from './tables.ts'

/**
 * Compares the tables of a warehouse with the CSV files of an export, which are copied into session tables: every row of the
 * export is there as this run wrote it, or its record was written by a later run; the run has no other rows; and after a proven
 * export of the whole list, no record that it lacks is unmarked.
 */
export async function compareExport(
  session: Session,
  { manifest, folder }: { manifest: Manifest; folder: string },
): Promise<Comparison> {
  const { where } = session
  const refusal = await findRefusal(session, manifest)
  if (refusal.length > 0) return { where, problems: refusal, tables: [] }
  const problems: string[] = []
  const tables: Comparison['tables'] = []
  const main = manifest.tables[0]!
  for (const published of manifest.tables) {
    await createStaged(session, published)
    for (const { path } of published.files)
      await copyInto(session, published, createReadStream(join(folder, path)), ', header')
    const table = toWarehouseTable(published)
    const [counted] = await session.all(
      `select count(*) filter (where "_run_id" = $1) as compared, count(*) filter (where "_run_id" is distinct from $1) as newer
        from ${session.nameOf(published.name)}`,
      [manifest.run],
    )
    tables.push({
      name: published.name,
      compared: Number(counted?.['compared']),
      newer: Number(counted?.['newer']),
    })
    problems.push(...(await findDifferences(session, { manifest, main: toWarehouseTable(main), table })))
  }
  return { where, tables, problems: [...problems, ...(await findUnmarked(session, manifest))] }
}

/** Why the tables can't be compared: there are none, they belong to another owner, or this run is not in them. */
async function findRefusal(session: Session, manifest: Manifest): Promise<string[]> {
  const { where } = session
  const found = await findTables(session)
  const missing = [ownerTable, ...manifest.tables.map(({ name }) => name)].filter(
    (name) => !found.columns.has(name),
  )
  if (missing.length > 0) return [`${where} has no table ${missing.join(', ')}.`]
  const [stamp] = await session.all(`select workspace, mode from ${session.nameOf(ownerTable)}`)
  const mode = manifest.testMode ? 'test' : 'live'
  if (stamp?.['workspace'] !== manifest.workspace || stamp['mode'] !== mode)
    return [
      `${where} is of workspace ${stamp?.['workspace']} (${stamp?.['mode']}), the export of ${manifest.workspace} (${mode}).`,
    ]
  // Without its export, every row would count as another run's.
  if ((await findExport(session, found, manifest)) === undefined)
    return [
      `${where} has no export of ${manifest.resource} by the run ${manifest.run}: publish it there before they are compared.`,
    ]
  return manifest.tables.flatMap((table) => {
    const there = found.columns.get(table.name)
    const lacking = [...toWarehouseTable(table).columns, ...runColumns].filter(
      ({ name }) => !there?.has(name),
    )
    return lacking.length === 0
      ? []
      : [`${table.name} has no column ${lacking.map(({ name }) => name).join(', ')}.`]
  })
}

const mostNamed = 3

/** Compares the rows of a run with those of its export both ways, and names those that differ. */
async function findDifferences(
  session: Session,
  { manifest, main, table }: { manifest: Manifest; main: WarehouseTable; table: WarehouseTable },
): Promise<string[]> {
  const { name, key } = table.table
  const keys = key.map(quote)
  const others = table.columns.filter((column) => !key.includes(column.name))
  // `json` has no equality.
  const comparable = (column: WarehouseTable['columns'][number], value: string) =>
    `${typeOf(column) === 'json' ? `${value}::text` : value} as ${quote(column.name)}`
  const ofKey = (of: string) => keys.map((column) => `${of}.${column}`)
  const different = others.map(
    (column) =>
      `case when e.${quote(column.name)} is distinct from w.${quote(column.name)} then ${literal(column.name)} end`,
  )
  const rows = await session.all(
    `with w as (select ${table.columns.map((column) => comparable(column, quote(column.name))).join(', ')}
        from ${session.nameOf(name)} where "_run_id" = $1),
      e as (select ${table.columns.map((column) => comparable(column, valueOf(column))).join(', ')}
        from ${stagedName(name)} s where not exists (select from ${session.nameOf(main.table.name)} m
          where m.${quote(main.table.key[0]!)} = ${valueOf(table.columns[0]!)} and m."_run_id" is distinct from $1)),
      compared as (select concat_ws(',', ${ofKey('e')
        .map((column, at) => `coalesce(${column}, ${ofKey('w')[at]})`)
        .join(', ')}) as key,
          case when ${ofKey('w')[0]} is null then 'lacked' when ${ofKey('e')[0]} is null then 'extra'
            else nullif(concat_ws(', ', ${different.length === 0 ? 'null' : different.join(', ')}), '') end as problem
        from e full join w on ${keys.map((column) => `e.${column} = w.${column}`).join(' and ')})
    select problem, count(*) as rows,
      array_to_string((array_agg(key order by key))[1:${mostNamed}], '; ') as first
    from compared where problem is not null group by problem order by problem`,
    [manifest.run],
  )
  return rows.map((row) => describeDifference(name, row))
}

function describeDifference(table: string, { problem, rows, first }: Row): string {
  const counted = rows === '1' ? '1 row' : `${rows} rows`
  const named = `${first}${Number(rows) > mostNamed ? '; ...' : ''}`
  if (problem === 'lacked') return `${table} lacks ${counted} of the export: ${named}.`
  if (problem === 'extra') return `${table} has ${counted} under this run that the export lacks: ${named}.`
  return `${table} does not hold what was exported in ${problem} of ${counted}: ${named}.`
}

/** Finds records that an export of the whole list proves gone and that are not marked. */
async function findUnmarked(session: Session, manifest: Manifest): Promise<string[]> {
  const { name, key, columns } = manifest.tables[0]!
  const hasCreated = columns.some((column) => column.name === 'created' && column.kind === 'timestamp')
  const isProof =
    isOfAll(manifest) && caveatOf(manifest) === undefined && manifest.completeThrough !== null && hasCreated
  if (!isProof) return []
  const id = quote(key[0]!)
  const rows = await session.all(
    `select ${id}::text as id from ${session.nameOf(name)} where ${absent} order by ${id} limit ${mostNamed + 1}`,
    boundsOf(manifest),
  )
  if (rows.length === 0) return []
  const first = rows.slice(0, mostNamed).map((row) => row['id'])
  return [
    `${name} has records that the export lacks and that are not marked as deleted: ${first.join(', ')}${rows.length > mostNamed ? ', ...' : ''}.`,
  ]
}
