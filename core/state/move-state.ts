import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Insertable, type Kysely, sql } from 'kysely'
import { UnstorableRowError } from './errors.ts'
import { StateInUseError } from './place-errors.ts'
import { type MovedNote, movedNoteOf, readMovedNote } from './moved-note.ts'
import { takeFolderId } from './postgres/folder-id.ts'
import { bindFolder, refuseOtherWorker } from './postgres/membership.ts'
import { type StateDatabase, openPostgresStore } from './postgres/postgres-store.ts'
import { openSqliteStore } from './sqlite/sqlite-store.ts'
import type { Store } from './store.ts'
import type { ChangeTable, StateTables } from './tables.ts'

type Db = Kysely<StateTables>

export interface MovedState {
  /** The schema and server, without user and password. */
  to: string
  /** How many changes are there now. */
  changes: number
}

/**
 * Copies the state of a data folder to PostgreSQL, with its id, and leaves `moved.json`, so that nothing starts with the
 * old one. The caller holds the folder's lock. Repeating it after an interruption completes it.
 *
 * @throws {StateInUseError} the schema has another state, which is not empty
 * @throws {SecondWorkerError} a worker with another data folder uses the schema
 * @throws {UnstorableRowError} a key or body contains the character NUL
 * @throws {StateUnreadableError} there is no state.db
 */
export async function moveState(place: { folder: string; database: StateDatabase }): Promise<MovedState> {
  const { folder, database } = place
  await using closing = new AsyncDisposableStack()
  const to = closing.adopt(await openPostgresStore({ database, readOnly: false }), (store) => store.close())
  const note = readMovedNote(folder)
  const moved = note !== undefined && (await storeOf(to.db)) === note.store
  const id = takeFolderId(folder)
  await refuseOtherWorker({ store: to, id })
  if (!moved) await copyState({ folder, to })
  await bindFolder({ store: to, id, isFree: false })
  return { to: to.place, changes: await countChanges(to.db) }
}

async function copyState({ folder, to }: { folder: string; to: Store }): Promise<void> {
  const file = join(folder, 'state.db')
  await using closing = new AsyncDisposableStack()
  const from = closing.adopt(await openSqliteStore({ folder, file, readOnly: false }), (store) =>
    store.close(),
  )
  const { id } = await from.db.selectFrom('store').select('id').executeTakeFirstOrThrow()
  // Before the commit: from then on nothing may start with the old state, however this process ends.
  writeNote(folder, { to: to.place, store: id, at: new Date().toISOString() })
  try {
    await to.db
      .transaction()
      .execute((transaction) => copyAll({ from: from.db, to: transaction, place: to.place }))
  } catch (error) {
    // The note stays if the commit may have taken effect.
    if ((await storeOf(to.db)) !== id) rmSync(movedNoteOf(folder))
    throw error
  }
  // A version that does not know the note refuses the file, as one from a newer version.
  const at = new Date().toISOString()
  await sql`insert into kysely_migration values ('moved-to-postgresql', ${at})`.execute(from.db)
}

function writeNote(folder: string, note: MovedNote): void {
  const fresh = `${movedNoteOf(folder)}.${process.pid}`
  writeFileSync(fresh, `${JSON.stringify(note)}\n`, { flush: true })
  renameSync(fresh, movedNoteOf(folder))
}

const storeOf = async (db: Db) => (await db.selectFrom('store').select('id').executeTakeFirst())?.id

async function countChanges(db: Db): Promise<number> {
  const count = db.selectFrom('changes').select(({ fn }) => fn.countAll<number>().as('number'))
  return (await count.executeTakeFirstOrThrow()).number
}

const rowsAtOnce = 1_000

async function copyAll({ from, to, place }: { from: Db; to: Db; place: string }): Promise<void> {
  const watermark = await to.selectFrom('watermarks').select('at').limit(1).executeTakeFirst()
  if (watermark !== undefined || (await countChanges(to)) > 0) throw new StateInUseError({ place })
  for (const table of ['store', 'leases', 'watermarks', 'senders'] as const) {
    const rows = await from.selectFrom(table).selectAll().execute()
    // A worker may have started on the empty schema.
    await to.deleteFrom(table).execute()
    for (const row of rows) await to.insertInto(table).values(row).execute()
  }
  for (let last = 0; ;) {
    const page = from.selectFrom('changes').selectAll().where('id', '>', last).orderBy('id').limit(rowsAtOnce)
    const rows = await page.execute()
    if (rows.length === 0) break
    const values = rows.map((row) => {
      if (`${row.key}${row.body}`.includes('\0')) throw new UnstorableRowError(row)
      // PostgreSQL gives the ids, in the same order.
      const columns = Object.entries(row).filter(([name]) => name !== 'id')
      return Object.fromEntries(
        columns.map(([name, value]) => [name, withoutNul(value)]),
      ) as Insertable<ChangeTable>
    })
    await to.insertInto('changes').values(values).execute()
    last = rows.at(-1)!.id
  }
  if ((await countChanges(to)) !== (await countChanges(from)))
    throw new RangeError('the copy of the ledger is not complete')
}

/** PostgreSQL cannot store NUL. */
const withoutNul = <T>(value: T) => (typeof value === 'string' ? value.replaceAll('\0', '\uFFFD') : value)
