import type { Publication } from '../destination.ts'
import { ForeignWarehouseError } from './errors.ts'
import type { WarehouseSession } from './session.ts'
import { literal, quote } from './sql.ts'

/** The warehouse's own tables. */
export const ownerTable = '_warehouse'
export const columnsTable = '_columns'
export const exportsTable = '_exports'
export const rejectedTable = '_rejected'
/** What each table of a resource held when its last publication ended: see held-rows.ts. */
export const heldTable = '_held'

/** The version of the table layout; `migrate` upgrades older ones. */
export const newestLayout = 3

type Owner = Pick<Publication, 'workspace' | 'baseUrl' | 'testMode'>

/**
 * Checks whether a warehouse may take a publication: a new one may; one of another workspace, address or
 * mode never does.
 * @throws {ForeignWarehouseError}
 */
export async function checkOwner(options: {
  session: WarehouseSession
  /** `describe()` of the session. */
  tables: ReadonlyMap<string, unknown>
  owner: Owner
  where: string
}): Promise<'new' | 'ours'> {
  const { session, tables, owner, where } = options
  if (!tables.has(ownerTable)) return 'new'
  const { schema } = session
  const [stamp] = await session.all(
    `select workspace, base_url, mode from ${quote(schema)}.${quote(ownerTable)}`,
  )
  const own = toOwner(owner)
  const differences = Object.entries(own).filter(([name, value]) => stamp?.[name] !== value)
  if (differences.length === 0) return 'ours'
  const told = differences.map(
    ([name, value]) => `${words[name]} ${stamp?.[name] ?? 'unknown'}, not ${value}`,
  )
  throw new ForeignWarehouseError(
    `${where} holds another warehouse (${told.join('; ')}). Nothing was written: name another file, database or` +
      ' schema.',
  )
}

const words: Readonly<Record<string, string>> = { workspace: 'workspace', base_url: 'address', mode: 'mode' }

const toOwner = ({ workspace, baseUrl, testMode }: Owner) => ({
  workspace,
  base_url: toAddress(baseUrl),
  mode: testMode ? 'test' : 'live',
})

/** Strips the trailing slash and any login from an address. */
function toAddress(baseUrl: string): string {
  const url = new URL(baseUrl)
  url.username = ''
  url.password = ''
  return url.href.replace(/\/+$/, '')
}

/** Creates the warehouse's own tables and records its owner in them. */
export async function writeOwner(session: WarehouseSession, owner: Owner): Promise<void> {
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
