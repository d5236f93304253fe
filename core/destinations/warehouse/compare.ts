import type { Comparison } from '../destination.ts'
import { InvalidInput } from '../../runs/errors.ts'
import { instant, runColumns, toWarehouseTable, type WarehouseTable, literal, quote } from '../layout.ts'
import type { Manifest, PublishedTable } from '../manifest.ts'
import { caveatOf, isAbsent, isOfAll } from './deletes.ts'
import { exportsTable, findExport, ownerTable } from './exports.ts'
import type { Database, Row } from './tables.ts'

/**
 * Compares the tables of a warehouse with the CSV files of an export: every row of the export is there as this run wrote it, or
 * its record has a state that is not older; the run has no other rows; none is marked as deleted but by a later export; and after a
 * proven export of the whole list, no record that it lacks is unmarked. Of an id that several records have, nothing is compared.
 * @throws {InvalidInput}
 * @param stage copies the files of a table into the session, and returns what can be selected from then, with typed columns
 */
export async function compareExport(
  db: Database,
  manifest: Manifest,
  stage: (table: PublishedTable) => Promise<string>,
): Promise<Comparison> {
  const { where } = db
  const missing = await findMissing(db, manifest)
  if (missing.length > 0) return { where, problems: missing, tables: [] }
  const problems: string[] = []
  const tables: Comparison['tables'] = []
  const run = literal(manifest.run)
  const staged: string[] = []
  for (const table of manifest.tables) {
    const exported = await stage(table)
    staged.push(exported)
    const [counted = {}] = await db.all(`select count(*) filter (where _run_id = ${run}) as compared,
      count(*) filter (where _run_id is distinct from ${run}) as newer from ${db.nameOf(table.name)}`)
    const { compared, newer } = counted
    tables.push({ name: table.name, compared: Number(compared), newer: Number(newer) })
    problems.push(...(await findDifferences(db, { manifest, table: toWarehouseTable(table), exported })))
  }
  return { where, tables, problems: [...problems, ...(await findUnmarked(db, manifest, staged[0]!))] }
}

/**
 * What has to be there before rows can be compared: the tables, this run, and each column.
 * @throws {InvalidInput} the tables belong to another owner
 */
async function findMissing(db: Database, manifest: Manifest): Promise<string[]> {
  const { where } = db
  const found = await db.describe()
  const missing = [ownerTable, ...manifest.tables.map(({ name }) => name)].filter((name) => !found.has(name))
  if (missing.length > 0) return [`${where} has no table ${missing.join(', ')}.`]
  const [stamp = {}] = await db.all(`select workspace, mode from ${db.nameOf(ownerTable)}`)
  const mode = manifest.testMode ? 'test' : 'live'
  if (stamp['workspace'] !== manifest.workspace || stamp['mode'] !== mode)
    throw new InvalidInput(
      `${where} is of workspace ${stamp['workspace']} (${stamp['mode']}), the export of ${manifest.workspace} (${mode}).`,
    )
  // Without its export, every row would count as another run's.
  if ((await findExport(db, found, manifest)) === undefined)
    return [
      `${where} has no export of ${manifest.resource} by the run ${manifest.run}: publish it there before they are compared.`,
    ]
  return manifest.tables.flatMap((table) => {
    const there = found.get(table.name)
    const lacking = [...toWarehouseTable(table).columns, ...runColumns]
      .map(({ name }) => name)
      .filter((name) => there?.has(name) !== true)
    return lacking.length === 0 ? [] : [`${table.name} has no column ${lacking.join(', ')}.`]
  })
}

const mostNamed = 3

/** Begins with a `=`, because DuckDB's driver strips a byte order mark that a text begins with. */
const toKey = (columns: readonly string[]) => `'=' || concat_ws(',', ${columns.join(', ')})`

/** Compares the rows of a run with those of its export both ways, and names those that differ. */
async function findDifferences(
  db: Database,
  {
    manifest,
    table: { table, columns },
    exported,
  }: { manifest: Manifest; table: WarehouseTable; exported: string },
): Promise<string[]> {
  const main = manifest.tables[0]!
  const keys = table.key.map(quote)
  const run = literal(manifest.run)
  const differing = columns
    .filter(({ name }) => !table.key.includes(name))
    .map(({ name, kind }) => {
      // PostgreSQL's `json` has no equality.
      const value = `${quote(name)}${kind === 'json' ? '::text' : ''}`
      return `case when e.${value} is distinct from w.${value} then ${literal(name)} end`
    })
  const ofRecord = (row: string) =>
    `from ${db.nameOf(main.name)} m where m.${quote(main.key[0]!)} = ${row}.${keys[0]}`
  // A record is marked by a later export that proves it gone, and its child rows with it.
  const mark =
    table.parent === undefined
      ? `not exists (select 1 from ${db.nameOf(exportsTable)} x where x.resource = ${literal(table.resource)}
          and x.marks_deletes and x.read_at > ${instant(manifest.startedAt)} and x.read_at = w._deleted_at)
        and w._deleted_at is not null`
      : `exists (select 1 ${ofRecord('w')} and m._deleted_at is distinct from w._deleted_at)`
  differing.push(`case when ${mark} then '_deleted_at' end`)
  // Of several records with one id, a warehouse has one, and none of their child rows.
  const { repeatedIds = [] } = manifest
  const andUnique =
    repeatedIds.length === 0 ? '' : ` and ${keys[0]} not in (${repeatedIds.map(literal).join(', ')})`
  // Another run that wrote a record has replaced its child rows along with it. Its state is not older if a read since then saw it.
  const isOfRun =
    `t._run_id = ${run}` +
    (table.parent === undefined ? '' : ` or exists (select 1 ${ofRecord('t')} and m._run_id = ${run})`)
  const ofRun = `from ${db.nameOf(table.name)} t where (${isOfRun})${andUnique}`
  const rows = await db.all(`with w as (select * ${ofRun}),
    e as (select e.* from ${exported} e where true${andUnique} and not exists (select 1 ${ofRecord('e')}
        and m._run_id is distinct from ${run}
        and m._read_at >= ${instant(manifest.startedAt)})),
    compared as (select ${toKey(keys.map((key) => `coalesce(e.${key}, w.${key})`))} as key,
      case when w.${keys[0]} is null then 'lacked' when e.${keys[0]} is null then 'extra'
        else nullif(concat_ws(', ', ${['null', ...differing].join(', ')}), '') end as problem
      from e full join w on ${keys.map((key) => `e.${key} = w.${key}`).join(' and ')}
      union all select ${toKey(keys)}, 'double' ${ofRun} group by ${keys.join(', ')} having count(*) > 1)
    select problem, count(*) as rows, array_to_string((array_agg(key order by key))[1:${mostNamed}], '; ') as keys
    from compared where problem is not null group by problem order by problem`)
  return rows.map((row) => describeDifference(table.name, row))
}

function describeDifference(table: string, { problem, rows, keys }: Row): string {
  const counted = rows === '1' ? '1 row' : `${rows} rows`
  const named = `${keys!.slice(1).replaceAll('; =', '; ')}${Number(rows) > mostNamed ? '; ...' : ''}`
  if (problem === 'lacked') return `${table} lacks ${counted} of the export: ${named}.`
  if (problem === 'extra') return `${table} has ${counted} under this run that the export lacks: ${named}.`
  if (problem === 'double') return `${table} has ${counted} of the export more than once: ${named}.`
  return `${table} does not hold what was exported in ${problem} of ${counted}: ${named}.`
}

/**
 * Finds records that an export of the whole list proves gone and that are not marked.
 * @param exported the records of the export: an older state of one is there as if its read lacked it
 */
async function findUnmarked(db: Database, manifest: Manifest, exported: string): Promise<string[]> {
  const { name, key, columns } = manifest.tables[0]!
  const hasCreated = columns.some((column) => column.name === 'created' && column.kind === 'timestamp')
  const isProof =
    isOfAll(manifest) && caveatOf(manifest) === undefined && manifest.completeThrough !== null && hasCreated
  if (!isProof) return []
  const id = quote(key[0]!)
  const rows = await db.all(`select ${toKey([id])} as key from ${db.nameOf(name)} w
    where ${isAbsent(manifest)} and not exists (select 1 from ${exported} e where e.${id} = w.${id})
    order by 1 limit ${mostNamed + 1}`)
  if (rows.length === 0) return []
  const first = rows.slice(0, mostNamed).map((row) => row['key']!.slice(1))
  return [
    `${name} has records that the export lacks and that are not marked as deleted: ${first.join(', ')}${rows.length > mostNamed ? ', ...' : ''}.`,
  ]
}
