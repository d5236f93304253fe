import type { Publication } from '../destination.ts'
import { manifestSchema, type Manifest } from '../manifest/manifest.ts'
import type { WarehouseSession } from './session.ts'
import { instant, literal, quote } from './sql.ts'
import { exportsTable, rejectedTable } from './warehouse-owner.ts'

type Tables = ReadonlyMap<string, unknown>

/** Whether an export made a table that an earlier one had filled: somebody had dropped it, with its rows. */
export const isMadeAgain = (earlier: Manifest, { tablesMade = [] }: Manifest): boolean =>
  earlier.tables.some(({ name }) => tablesMade.includes(name))

/**
 * The tables of a resource's exports that no longer have what those wrote, as far as can be seen without reading them whole:
 * somebody has dropped or emptied them. Records are never removed, so the main table is not empty after one of its exports
 * had any.
 */
export async function findEmptied(
  session: WarehouseSession,
  { exports, there }: { exports: readonly Manifest[]; there: Tables },
): Promise<string[]> {
  const names = new Set(exports.flatMap(({ tables }) => tables.map(({ name }) => name)))
  const dropped = [...names].filter((name) => !there.has(name))
  const main = exports
    .map(({ tables }) => tables[0])
    .find((table) => table !== undefined && table.rows > 0)?.name
  if (main === undefined || dropped.includes(main)) return dropped
  const rows = await session.all(`select 1 from ${inSchema(session, main)} limit 1`)
  return rows.length === 0 ? [main, ...dropped] : dropped
}

/** What a published export has lost: tables that were dropped, emptied or made again by a later export. */
export async function findLost(
  session: WarehouseSession,
  { existing }: { existing: Manifest },
): Promise<string[]> {
  const there = await session.describe()
  const lost = new Set(await findEmptied(session, { exports: [existing], there }))
  if (existing.rejected.rows > 0 && !there.has(rejectedTable)) lost.add(rejectedTable)
  for (const later of await exportsAfter(session, existing))
    for (const { name } of existing.tables) if (later.tablesMade?.includes(name) === true) lost.add(name)
  return [...lost]
}

async function exportsAfter(
  session: WarehouseSession,
  { resource, publishedAt }: Pick<Publication, 'resource'> & Pick<Manifest, 'publishedAt'>,
): Promise<Manifest[]> {
  const rows = await session.all(`select manifest from ${inSchema(session, exportsTable)}
    where resource = ${literal(resource)} and published_at > ${instant(publishedAt)}`)
  return rows.map((row) => manifestSchema.parse(JSON.parse(row['manifest'] ?? '')))
}

const inSchema = ({ schema }: WarehouseSession, table: string) => `${quote(schema)}.${quote(table)}`
