import { checkOwner, toOwner, type Owner } from '../admission.ts'
import type { WarehouseSession } from './session.ts'
import { literal, quote } from '../sql.ts'

/** The warehouse's own tables. */
export const ownerTable = '_warehouse'
export const columnsTable = '_columns'
export const exportsTable = '_exports'
export const rejectedTable = '_rejected'
/** What each table of a resource held when its last publication ended: see held-rows.ts. */
export const heldTable = '_held'

/** The version of the table layout; `migrate` upgrades older ones. */
export const newestLayout = 3

/**
 * Checks whether a warehouse may take a publication: a new one may; one of another workspace, address or
 * mode never does.
 * @throws {ForeignWarehouseError}
 */
export async function findOwner(options: {
  session: WarehouseSession
  /** `describe()` of the session. */
  tables: ReadonlyMap<string, unknown>
  owner: Parameters<typeof toOwner>[0]
  where: string
}): Promise<'new' | 'ours'> {
  const { session, tables, owner, where } = options
  if (!tables.has(ownerTable)) return 'new'
  const { schema } = session
  const [stamp] = await session.all(
    `select workspace, base_url, mode from ${quote(schema)}.${quote(ownerTable)}`,
  )
  checkOwner({ stamp: (stamp ?? {}) as unknown as Owner, publication: owner, where })
  return 'ours'
}

/** Creates the warehouse's own tables and records its owner in them. */
export async function writeOwner(
  session: WarehouseSession,
  owner: Parameters<typeof toOwner>[0],
): Promise<void> {
  const inSchema = (table: string) => `${quote(session.schema)}.${quote(table)}`
  await session.run(`create table ${inSchema(ownerTable)} (workspace text not null, base_url text not null,
    mode text not null, layout integer not null, created_at timestamptz not null)`)
  const stamp = Object.values(toOwner(owner)).map(literal)
  await session.run(
    `insert into ${inSchema(ownerTable)} values (${stamp.join(', ')}, ${newestLayout}, current_timestamp)`,
  )
  await session.run(`create table ${inSchema(columnsTable)} (table_name text not null, column_name text not null,
    kind text not null, note text not null, primary key (table_name, column_name))`)
  await session.run(`create table ${inSchema(exportsTable)} (run text not null, resource text not null,
    mode text not null, filters json not null, capped boolean not null, verdict text not null,
    reasons json not null, scope json, warnings json not null, read_at timestamptz not null, complete_through timestamptz,
    rows bigint not null, deleted bigint not null, marks_deletes boolean not null,
    published_at timestamptz not null, manifest json not null, primary key (run, resource))`)
  await session.run(`create table ${inSchema(rejectedTable)} (run text not null, resource text not null,
    line text not null)`)
  await createHeld(session)
}

export async function createHeld(session: WarehouseSession): Promise<void> {
  await session.run(`create table ${quote(session.schema)}.${quote(heldTable)} (resource text not null, table_name text not null,
    held text not null, primary key (resource, table_name))`)
}
