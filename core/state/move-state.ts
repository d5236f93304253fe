import { rm } from 'node:fs/promises'
import type { Insertable, Kysely, Selectable } from 'kysely'
import { replaceFile } from '../storage/durable.ts'
import { createFolderMark, refuseOlderThanMark } from './claims-mark.ts'
import { StateError, unstorableRow } from './errors.ts'
import { createQueries } from './ledger/queries.ts'
import { type MovedNote, movedNoteOf, openSqliteStore, readMovedNote } from './sqlite.ts'
import { refuseWorkers } from './postgres/membership.ts'
import { type StateDatabase, openPostgresStore } from './postgres/postgres-store.ts'
import type { Store } from './store.ts'
import type { ChangeTable, StateTables } from './schema.ts'

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
 * @throws {OldLedgerError} the folder's state was restored from a backup
 * @throws {StateError} there is no state.db, a row contains NUL, a worker uses the schema, or it has another state
 */
export async function moveState(place: { folder: string; database: StateDatabase }): Promise<MovedState> {
  const { folder, database } = place
  await using closing = new AsyncDisposableStack()
  const to = closing.adopt(await openPostgresStore({ database, readOnly: false }), (store) => store.close())
  const note = readMovedNote(folder)
  const moved = note !== undefined && (await storeOf(to.db)) === note.store
  if (!moved) await copyState({ folder, to })
  return { to: to.place, changes: await countChanges(to.db) }
}

async function copyState({ folder, to }: { folder: string; to: Store }): Promise<void> {
  await using closing = new AsyncDisposableStack()
  const from = closing.adopt(await openSqliteStore({ folder, readOnly: false }), (store) => store.close())
  const { id } = await from.db.selectFrom('store').select('id').executeTakeFirstOrThrow()
  await refuseOlderThanMark({ ledger: createQueries(from), mark: createFolderMark(folder) })
  // Before the commit: from then on nothing may start with the old state, however this process ends.
  const note: MovedNote = { to: to.place, store: id, at: new Date().toISOString() }
  await replaceFile(movedNoteOf(folder), `${JSON.stringify(note)}\n`)
  try {
    await to.db
      .transaction()
      .execute((transaction) => copyAll({ from: from.db, to: { ...to, db: transaction } }))
  } catch (error) {
    // The note stays if the commit may have taken effect.
    if ((await storeOf(to.db)) !== id) await rm(movedNoteOf(folder))
    throw error
  }
}

const storeOf = async (db: Db) => (await db.selectFrom('store').select('id').executeTakeFirst())?.id

async function countChanges(db: Db): Promise<number> {
  const count = db.selectFrom('changes').select(({ fn }) => fn.countAll<number>().as('number'))
  return (await count.executeTakeFirstOrThrow()).number
}

const rowsAtOnce = 1_000

async function copyAll({ from, to }: { from: Db; to: Store }): Promise<void> {
  const { db, place } = to
  // First, because it locks the row: a worker that starts meanwhile waits until the state is here.
  await db
    .updateTable('store')
    .set(await from.selectFrom('store').selectAll().executeTakeFirstOrThrow())
    .execute()
  await refuseWorkers(to)
  const publication = await db.selectFrom('publications').select('run').limit(1).executeTakeFirst()
  if (publication !== undefined || (await countChanges(db)) > 0)
    throw new StateError(
      'StateInUseError',
      `There is another state in ${place}, with changes or publications of its own: two states cannot be merged. Nothing was moved.`,
    )
  for (const table of ['leases', 'publications', 'notes'] as const) {
    const rows = await from.selectFrom(table).selectAll().execute()
    // A worker may have started on the empty schema.
    await db.deleteFrom(table).execute()
    for (const row of rows) await db.insertInto(table).values(row).execute()
  }
  const byItsClock = clockOf(to)
  for (let last = 0; ;) {
    const page = from.selectFrom('changes').selectAll().where('id', '>', last).orderBy('id').limit(rowsAtOnce)
    const rows = await page.execute()
    if (rows.length === 0) break
    const values = rows.map((row) => {
      if (`${row.key}${row.body}`.includes('\0')) throw unstorableRow(row)
      // PostgreSQL gives the ids, in the same order.
      const columns = Object.entries(byItsClock(row)).filter(([name]) => name !== 'id')
      return Object.fromEntries(
        columns.map(([name, value]) => [name, withoutNul(value)]),
      ) as Insertable<ChangeTable>
    })
    await db.insertInto('changes').values(values).execute()
    last = rows.at(-1)!.id
  }
  if ((await countChanges(db)) !== (await countChanges(from)))
    throw new RangeError('the copy of the ledger is not complete')
}

/** Waits begin at the times in a row, and from now on PostgreSQL's clock ends them: one that is ahead must not shorten them. */
function clockOf({ now }: Pick<Store, 'now'>) {
  const aheadMs = now() - Date.now()
  const moved = (time: number | null) => (time === null ? null : time + aheadMs)
  return (row: Selectable<ChangeTable>) => ({
    ...row,
    unknownSince: moved(row.unknownSince),
    checkedAt: moved(row.checkedAt),
    notBefore: row.notBefore === 0 ? 0 : row.notBefore + aheadMs,
  })
}

/** PostgreSQL cannot store NUL. */
const withoutNul = <T>(value: T) => (typeof value === 'string' ? value.replaceAll('\0', '\uFFFD') : value)
