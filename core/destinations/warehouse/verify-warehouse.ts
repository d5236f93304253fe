import type { Comparison, Warehouse } from '../destination.ts'
import { createDiskSet } from '../../storage/disk-set.ts'
import type { Manifest } from '../manifest/manifest.ts'
import { caveatOf, isOfAll } from '../absence.ts'
import { compareTable, type Compared } from './compare-table.ts'
import type { WarehouseEngine, WarehouseSession } from './session.ts'
import { instant, literal, quote } from '../sql.ts'
import { findExport } from './export-row.ts'
import { columnsOf } from './compared-columns.ts'
import { ownerTable } from './warehouse-owner.ts'

export async function compareWithExport(
  engine: WarehouseEngine,
  { manifest, folder, signal }: Parameters<Warehouse['compare']>[0],
): Promise<Comparison> {
  const scope = {
    testMode: manifest.testMode,
    readOnly: true,
    ...(signal === undefined ? {} : { signal }),
  }
  const where = engine.locate(scope)
  return engine.transaction(scope, async (session) => {
    const otherwise = await findOther(session, manifest, where)
    if (otherwise.length > 0) return { problems: otherwise, tables: [], where }
    const tables = await compareTables(session, manifest, folder)
    const problems = [
      ...tables.flatMap((table) => table.problems),
      ...(await findUnmarked(session, manifest)),
    ]
    return { problems, tables, where }
  })
}

async function compareTables(
  session: WarehouseSession,
  manifest: Manifest,
  folder: string,
): Promise<Compared[]> {
  const keys = createDiskSet({ cacheMiB: 64 })
  try {
    const compared = []
    for (const table of manifest.tables)
      compared.push(await compareTable({ session, manifest, table, folder, keys }))
    return compared
  } finally {
    keys.close()
  }
}

/**
 * Why the tables cannot be compared: there are none, they belong to another owner, or this run is not in
 * them.
 */
async function findOther(session: WarehouseSession, manifest: Manifest, where: string): Promise<string[]> {
  const tables = await session.describe()
  const missing = [ownerTable, ...manifest.tables.map(({ name }) => name)].filter((name) => !tables.has(name))
  if (missing.length > 0) return [`${where} has no table ${missing.join(', ')}.`]
  const [stamp] = await session.all(
    `select workspace, mode from ${quote(session.schema)}.${quote(ownerTable)}`,
  )
  const mode = manifest.testMode ? 'test' : 'live'
  if (stamp?.['workspace'] !== manifest.workspace || stamp['mode'] !== mode)
    return [
      `${where} is of workspace ${stamp?.['workspace']} (${stamp?.['mode']}), the export of ${manifest.workspace} (${mode}).`,
    ]
  // Without its export row, every row would count as another run's and only be checked for presence.
  if ((await findExport(session, manifest)) === undefined)
    return [
      `${where} has no export of ${manifest.resource} by the run ${manifest.run}: publish it there before they are compared.`,
    ]
  return manifest.tables.flatMap((table) => {
    const there = tables.get(table.name)
    const lacking = [...columnsOf(table), '_run_id', '_read_at', '_deleted_at'].filter(
      (name) => !there?.has(name),
    )
    return lacking.length === 0 ? [] : [`${table.name} has no column ${lacking.join(', ')}.`]
  })
}

/** Finds records that an export of the whole list proves gone but that are not marked. */
async function findUnmarked(session: WarehouseSession, manifest: Manifest): Promise<string[]> {
  const { completeThrough, startedAt } = manifest
  const main = manifest.tables[0]
  const isWhole = isOfAll(manifest) && caveatOf(manifest) === undefined
  const hasCreated =
    main?.columns.some(({ name, kind }) => name === 'created' && kind === 'timestamp') ?? false
  if (main === undefined || !isWhole || completeThrough === null || !hasCreated) return []
  const id = quote(main.key[0]!)
  const rows =
    await session.all(`select cast(${id} as text) as id from ${quote(session.schema)}.${quote(main.name)}
    where "_deleted_at" is null and "_run_id" <> ${literal(manifest.run)} and "_read_at" < ${instant(startedAt)}
      and "created" <= ${instant(completeThrough)}
    order by ${id} limit 4`)
  if (rows.length === 0) return []
  const first = rows.slice(0, 3).map((row) => row['id'])
  return [
    `${main.name} has records that the export lacks and that are not marked as deleted: ${first.join(', ')}${rows.length > 3 ? ', ...' : ''}.`,
  ]
}
