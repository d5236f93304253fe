import { lossesFoundBy } from '../coverage.ts'
import type { Publication } from '../destination.ts'
import type { Manifest } from '../manifest/manifest.ts'
import { exportsAfter } from './export-row.ts'
import type { WarehouseSession } from './session.ts'
import { literal, quote } from '../sql.ts'
import { heldTable, rejectedTable } from './warehouse-owner.ts'

type Tables = ReadonlyMap<string, ReadonlyMap<string, string>>
type Held = Pick<Publication, 'resource'> & {
  /** The tables that an export has filled. */
  tables: readonly string[]
}

/**
 * The tables of a resource that no longer hold what its last publication left there, as far as numbers show: the live rows,
 * the marked ones, and the sums of their times. So somebody has removed, added, marked or replaced rows, or dropped the table.
 * Rows whose other columns somebody changed look the same.
 */
export async function findChanged(
  session: WarehouseSession,
  { resource, tables, there }: Held & { there: Tables },
): Promise<string[]> {
  const rows = there.has(heldTable)
    ? await session.all(
        `select table_name, held from ${inSchema(session, heldTable)} where resource = ${literal(resource)}`,
      )
    : []
  const left = new Map(rows.map((row) => [row['table_name'] ?? '', row['held']]))
  const changed: string[] = []
  for (const name of new Set([...left.keys(), ...tables])) {
    const held = left.get(name)
    if (held === undefined || held !== (await countHeld(session, name, there))) changed.push(name)
  }
  return changed
}

/** Records what the tables of a resource hold at the end of a publication. */
export async function writeHeld(
  session: WarehouseSession,
  { resource, tables }: Pick<Publication, 'resource' | 'tables'>,
): Promise<void> {
  const there = await session.describe()
  const rows: string[] = []
  for (const { name } of tables)
    rows.push(`(${[resource, name, (await countHeld(session, name, there)) ?? ''].map(literal).join(', ')})`)
  const held = inSchema(session, heldTable)
  await session.run(`delete from ${held} where resource = ${literal(resource)}`)
  await session.run(`insert into ${held} values ${rows.join(', ')}`)
}

/** What a table holds, as a text; undefined without the table or the columns that this counts. */
async function countHeld(
  session: WarehouseSession,
  table: string,
  there: Tables,
): Promise<string | undefined> {
  const types = there.get(table)
  const isInstant = (name: string) => types?.get(name)?.toLowerCase() === 'timestamp with time zone'
  if (!isInstant('_read_at') || !isInstant('_deleted_at')) return undefined
  const sumOf = (name: string) =>
    `coalesce(sum(${session.typeSystem.microseconds(quote(name))}) filter (where isfinite(${quote(name)})), 0)`
  const [row] =
    await session.all(`select count(*) - count("_deleted_at") as live, count("_deleted_at") as marked,
    ${sumOf('_read_at')} as reads, ${sumOf('_deleted_at')} as marks from ${inSchema(session, table)}`)
  return [row?.['live'], row?.['marked'], row?.['reads'], row?.['marks']].join(' ')
}

/** What a published export has lost since: tables that somebody changed, then or before a later export. */
export async function findLost(
  session: WarehouseSession,
  { existing }: { existing: Manifest },
): Promise<string[]> {
  const there = await session.describe()
  const tables = existing.tables.map(({ name }) => name)
  const lost = new Set(await findChanged(session, { resource: existing.resource, tables, there }))
  if (existing.rejected.rows > 0 && !there.has(rejectedTable)) lost.add(rejectedTable)
  for (const later of await exportsAfter(session, existing))
    for (const name of lossesFoundBy(later)) if (tables.includes(name)) lost.add(name)
  return [...lost]
}

const inSchema = ({ schema }: WarehouseSession, table: string) => `${quote(schema)}.${quote(table)}`
