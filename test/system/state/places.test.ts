import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join as joinPath } from 'node:path'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { findWorkers, joinStore, withoutWorkers } from '../../../core/state/postgres/membership.ts'
import { moveState } from '../../../core/state/move-state.ts'
import { openState, type State } from '../../../core/state/open.ts'
import { transact } from '../../../core/state/store.ts'
import { senderOf } from '../../core/state/sender-of.ts'
import { publicationOf } from '../../core/exports/record-read.ts'
import { temporaryFolder } from '../../core/state/temporary-folder.ts'
import { askPostgres, password, startPostgres, type Postgres } from '../destinations/postgres-server.ts'

let postgres: Postgres
let url: string
beforeAll(async () => {
  postgres = await startPostgres()
  url = await postgres.createDatabase()
})
afterAll(() => postgres.close())

/** The bucket of the workers. */
const files = { files: 'b1', filesPlace: 's3://exports/x' }

const join = (state: State, folder: string, bucket = files) =>
  joinStore({
    store: state.shared!,
    storeId: state.storeId,
    folder,
    bindBucket: () => Promise.resolve(bucket),
  })

let made = 0
const newDatabase = () => ({ url, schema: `connector_acc_${++made}` })

const space = { workspace: 'acc_1', mode: 'live', kind: 'create-addon' } as const
const toStage = (rows: number, run = 'r') => ({
  ...space,
  run,
  repeats: 'never' as const,
  changes: Array.from({ length: rows }, (_, index) => ({
    row: index + 1,
    key: `${run} ${index}`,
    body: '{"n":1.10}',
  })),
})

/** A folder with an embedded state that has every kind of row. */
async function embedded() {
  const folder = await temporaryFolder()
  const state = await openState({ folder })
  await state.ledger.stage(toStage(2_500))
  const sender = await senderOf(state.ledger, 'r')
  const first = await state.ledger.claim({ sender, id: 1, sends: 0, at: 5, before: '{"a":1}' })
  await state.ledger.move({
    id: first?.id ?? 0,
    from: ['sending'],
    patch: { state: 'done', answerId: '17', answer: 'seen\0so', outcome: 'created' },
  })
  await state.leases.take({
    name: 'import r',
    owner: { workflowId: 'w', runId: 'x' },
    isClosed: async () => false,
  })
  await state.publications.add(publicationOf({ changesThrough: 9 }))
  await state.notes.add({ subject: 'schedule nightly', notes: [{ name: 'x', body: '2026-11-21' }] })
  const { storeId } = state
  const rows = await rowsOf(state)
  await state.close()
  return { folder, storeId, rows, sender }
}

const rowsOf = async (state: State) =>
  (await Array.fromAsync(state.ledger.rows({ run: 'r' }))).map((row) => ({ ...row, id: 0 }))

test('move-state takes every row, the leases, the publications, the notes and the id of the store along', async () => {
  const { folder, storeId, rows, sender } = await embedded()
  const database = newDatabase()
  expect(await moveState({ folder, database })).toMatchObject({ changes: 2_500 })
  const state = await openState({ folder, database })
  onTestFinished(() => state.close())
  expect(state.storeId).toBe(storeId)
  const expected = rows.map((row) => ({ ...row, answer: row.answer?.replace('\0', '\uFFFD') ?? null }))
  expect(await rowsOf(state)).toEqual(expected)
  expect(await state.leases.lastHolder({ name: 'import r' })).toMatchObject({ workflowId: 'w', runId: 'x' })
  expect(await state.publications.all()).toMatchObject([{ resource: 'customers', changesThrough: 9 }])
  expect(await state.notes.of('schedule nightly')).toEqual([{ name: 'x', body: '2026-11-21' }])
  const second = (await state.ledger.row({ run: 'r', row: 2 }))!
  expect(await state.ledger.claim({ sender, id: second.id, sends: 0, at: 6 })).toMatchObject({ row: 2 })
})

test('a folder whose state has moved does not start without it, and says where it is, without a password', async () => {
  const { folder } = await embedded()
  const database = newDatabase()
  await moveState({ folder, database })
  const note = await readFile(joinPath(folder, 'moved.json'), 'utf8')
  expect(note).toContain(database.schema)
  expect(note).not.toContain(encodeURIComponent(password))
  for (const readOnly of [false, true])
    await expect(openState({ folder, readOnly })).rejects.toThrow(
      `was moved to the schema ${database.schema} of 127.0.0.1:${postgres.port}/`,
    )
  await expect(openState({ folder, database: newDatabase() })).rejects.toThrow('has another one or none')
})

test('no worker joins a state while a repair rewrites it, which waits for none to be there', async () => {
  const database = newDatabase()
  const [state, worker] = [
    await openState({ folder: await temporaryFolder(), database }),
    await openState({ folder: await temporaryFolder(), database }),
  ]
  onTestFinished(async () => void (await Promise.all([state.close(), worker.close()])))
  const repair = () =>
    state.ledger.markRestored({ at: 1, bounded: { kinds: ['create-addon'], sends: 1 }, forgotten: 3 })
  await withoutWorkers(state.shared, async () => {
    await expect(join(worker, 'w')).rejects.toThrow('is being repaired, reset or moved: start this worker')
    await repair()
  })
  expect(await worker.ledger.claimed()).toBe(3)
  await using _ = await join(worker, 'w')
  await expect(withoutWorkers(state.shared, repair)).rejects.toThrow('End all workers first')
})

test('no repair begins beside a worker that the restored backup does not know, once it has said that it is there', async () => {
  const database = newDatabase()
  const state = await openState({ folder: await temporaryFolder(), database })
  onTestFinished(() => state.close())
  const worker = await join(state, 'w')
  // It joined after the backup.
  await askPostgres(url, `delete from "${database.schema}".workers`)
  await worker.beat()
  const repair = () => withoutWorkers(state.shared, () => Promise.resolve('repaired'))
  await expect(repair()).rejects.toThrow('(data folder ')
  void worker.beat()
  await worker[Symbol.asyncDispose]()
  expect(await repair()).toBe('repaired')
})

test('a folder with a state of its own does not start on PostgreSQL before it is moved', async () => {
  const { folder } = await embedded()
  await expect(openState({ folder, database: newDatabase() })).rejects.toThrow('npx connector state move')
})

test('a move that PostgreSQL interrupts changes nothing, and one that ended before its last step is completed', async () => {
  const { folder, storeId } = await embedded()
  const database = newDatabase()
  // The last page of rows fails.
  await openAndClose(await temporaryFolder(), database)
  const refuse = `create function "${database.schema}".refuse() returns trigger language plpgsql as
      $$ begin if new."row" > 2000 then raise exception 'no' using errcode = '53100'; end if; return new; end $$;
    create trigger refuse before insert on "${database.schema}".changes for each row
      execute function "${database.schema}".refuse()`
  await askPostgres(url, refuse)
  await expect(moveState({ folder, database })).rejects.toThrow('No space left')
  expect(existsSync(joinPath(folder, 'moved.json'))).toBe(false)
  await openAndClose(folder)
  await askPostgres(url, `drop trigger refuse on "${database.schema}".changes`)
  await moveState({ folder, database })
  // As if it had ended right after the commit.
  expect(await moveState({ folder, database })).toMatchObject({ changes: 2_500 })
  const state = await openState({ folder, database })
  expect(state.storeId).toBe(storeId)
  await state.close()
})

async function openAndClose(folder: string, database?: ReturnType<typeof newDatabase>) {
  const state = await openState({ folder, database })
  await state.close()
}

test('a state that was restored from a backup is not moved before it is repaired', async () => {
  const { folder } = await embedded()
  await writeFile(joinPath(folder, 'state.claims'), '2\n')
  await expect(moveState({ folder, database: newDatabase() })).rejects.toThrow('it lacks 1 of 2 claims')
  expect(existsSync(joinPath(folder, 'moved.json'))).toBe(false)
})

test('a state is not moved into another one', async () => {
  const database = newDatabase()
  const other = await openState({ folder: await temporaryFolder(), database })
  await other.ledger.stage(toStage(1, 'other'))
  await other.close()
  const { folder } = await embedded()
  await expect(moveState({ folder, database })).rejects.toThrow('two states cannot be merged')
  await openAndClose(folder)
})

test('a state is not moved to where another worker is, or has left watermarks', async () => {
  const database = newDatabase()
  const elsewhere = await temporaryFolder()
  const other = await openState({ folder: elsewhere, database })
  onTestFinished(() => other.close())
  const { folder } = await embedded()
  const worker = await join(other, elsewhere)
  await expect(moveState({ folder, database })).rejects.toThrow(`(data folder ${elsewhere} on `)
  await worker[Symbol.asyncDispose]()
  await other.publications.add(publicationOf({ resource: 'plans' }))
  await expect(moveState({ folder, database })).rejects.toThrow('two states cannot be merged')
  expect(await other.publications.all()).toMatchObject([{ resource: 'plans' }])
  await openAndClose(folder)
})

test('of a move and a worker with another folder that starts meanwhile, one is refused', async () => {
  const { folder } = await embedded()
  const database = newDatabase()
  const keeper = await openState({ folder: await temporaryFolder(), database })
  onTestFinished(() => keeper.close())
  const [isLocked, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const locked = keeper.shared!.db.transaction().execute(async (db) => {
    await sql.raw(`lock table "${database.schema}".publications`).execute(db)
    isLocked.resolve()
    await release.promise
  })
  await isLocked.promise
  const waiting = async (number: number) =>
    ((await askPostgres(url, `select pid from pg_stat_activity where wait_event_type = 'Lock'`))?.length ??
      0) >= number
  const moving = moveState({ folder, database })
  while (!(await waiting(1))) await Promise.resolve()
  const elsewhere = await temporaryFolder()
  const joining = openState({ folder: elsewhere, database }).then(async (state) => {
    onTestFinished(() => state.close())
    return await join(state, elsewhere)
  })
  const ends = Promise.allSettled([moving, joining])
  const progress = { hasJoined: false }
  void joining.then(() => (progress.hasJoined = true)).catch(() => undefined)
  while (!progress.hasJoined && !(await waiting(2))) await Promise.resolve()
  release.resolve()
  await locked
  expect((await ends).map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
})

test('a move to a server whose clock is ahead shortens no wait for a lost request', async () => {
  const aheadMs = 600_000
  const { now } = Date
  vi.spyOn(Date, 'now').mockImplementation(() => now() - aheadMs)
  onTestFinished(() => void vi.restoreAllMocks())
  const folder = await temporaryFolder()
  const from = await openState({ folder })
  await from.ledger.stage(toStage(2))
  const at = Date.now()
  const [first, second] = await Array.fromAsync(from.ledger.rows({ run: 'r' }))
  const looked = { state: 'unknown', unknownSince: at, lookups: 1, checkedAt: at + 5 } as const
  await from.ledger.move({ id: first?.id ?? 0, from: ['staged'], patch: looked })
  await from.ledger.move({ id: second?.id ?? 0, from: ['staged'], patch: { notBefore: at + 9 } })
  await from.close()
  const database = newDatabase()
  await moveState({ folder, database })
  const to = await openState({ folder, database })
  onTestFinished(() => to.close())
  const [unknown, staged] = await rowsOf(to)
  // To within the round trip by which the server's clock was measured.
  const late = (time: number | null | undefined) => Math.abs(Math.round(((time ?? 0) - at - aheadMs) / 1_000))
  expect([unknown?.unknownSince, unknown?.checkedAt, staged?.notBefore].map(late)).toEqual([0, 0, 0])
  expect(unknown).toMatchObject({ sentAt: null, notBefore: 0 })
})

test('a state belongs to the bucket of its first worker, and a worker with another one is refused with one sentence', async () => {
  const database = newDatabase()
  const folder = await temporaryFolder()
  const state = await openState({ folder, database })
  onTestFinished(() => state.close())
  const store = state.shared!
  const [first, second] = await Promise.all([join(state, folder), join(state, await temporaryFolder())])
  expect(await findWorkers(store)).toHaveLength(2)
  const other = { files: 'b2', filesPlace: 's3://other/x' }
  await expect(join(state, folder, other)).rejects.toThrow('are in s3://exports/x, not in s3://other/x')
  await askPostgres(url, `update "${database.schema}".workers set seen_at = seen_at - 31000`)
  expect(await findWorkers(store)).toEqual([])
  await first.beat()
  expect(await findWorkers(store)).toHaveLength(1)
  for (const one of [first, second]) await one[Symbol.asyncDispose]()
  expect(await findWorkers(store)).toEqual([])
})

test('a user without rights, a wrong password, a missing database and a server that is away are one sentence each', async () => {
  const folder = await temporaryFolder()
  const open = (one: string) =>
    openState({ folder, database: { url: one, schema: 'connector_acc' } }).then(
      () => 'opened',
      (error: Error) => error.message,
    )
  await askPostgres(postgres.toUrl('postgres'), `create role reader login password 'reader'`)
  const { pathname } = new URL(url)
  const database = pathname.slice(1)
  expect(await open(postgres.toUrl(database, 'reader', 'reader'))).toMatch(
    /^PostgreSQL refuses the connector the schema connector_acc of .*permission denied for database .*Correct CONNECTOR_STATE_URL/,
  )
  expect(await open(postgres.toUrl(database, 'postgres', 'wrong'))).toMatch(/password authentication failed/)
  expect(await open(postgres.toUrl('nowhere'))).toMatch(/database "nowhere" does not exist/)
  expect(await open('postgres://u:p@127.0.0.1:1/x')).toMatch(/^PostgreSQL does not answer .*ECONNREFUSED/)
})

test('a schema of a newer version or an earlier checkout is refused', async () => {
  const folder = await temporaryFolder()
  const database = newDatabase()
  await openAndClose(folder, database)
  const table = `"${database.schema}".store`
  await askPostgres(url, `update ${table} set version = 99`)
  await expect(openState({ folder, database })).rejects.toThrow('newer version')
  await askPostgres(url, `alter table ${table} drop column version`)
  for (const readOnly of [false, true])
    await expect(openState({ folder, database, readOnly })).rejects.toThrow('earlier checkout')
  await expect(openState({ folder, database: newDatabase(), readOnly: true })).rejects.toThrow(
    'nothing in the schema',
  )
})

test('several workers that start at once on an empty database agree on one state', async () => {
  const folder = await temporaryFolder()
  const database = newDatabase()
  const states = await Promise.all(Array.from({ length: 4 }, () => openState({ folder, database })))
  expect(new Set(states.map(({ storeId }) => storeId)).size).toBe(1)
  await Promise.all(states.map((state) => state.close()))
})

test('a number that a double cannot hold is an error, not another number', async () => {
  const folder = await temporaryFolder()
  const database = newDatabase()
  const state = await openState({ folder, database })
  onTestFinished(() => state.close())
  await state.ledger.stage(toStage(1))
  await askPostgres(url, `update "${database.schema}".changes set not_before = 9007199254740993`)
  await expect(state.ledger.row({ run: 'r', row: 1 })).rejects.toThrow('too large')
})

test('a transaction waits and lasts only so long, whatever settings its session has, and its commit is on the disk', async () => {
  const place = { folder: await temporaryFolder(), database: newDatabase() }
  const state = await openState(place)
  onTestFinished(() => state.close())
  const name = new URL(url).pathname.slice(1)
  await askPostgres(url, `alter database ${name} set synchronous_commit = off`)
  onTestFinished(async () => void (await askPostgres(url, `alter database ${name} reset synchronous_commit`)))
  const names = [
    'synchronous_commit',
    'lock_timeout',
    'statement_timeout',
    'idle_in_transaction_session_timeout',
  ]
  const shown = await state.shared!.db.transaction().execute(async (db) => {
    const all = names.map((one) =>
      sql<{ value: string }>`select current_setting(${one}) as value`.execute(db),
    )
    return (await Promise.all(all)).map(({ rows }) => rows[0]?.value)
  })
  expect(shown).toEqual(['on', '5s', '30s', '10s'])
})

test('a transaction that loses a deadlock is tried again', async () => {
  const state = await openState({ folder: await temporaryFolder(), database: newDatabase() })
  onTestFinished(() => state.close())
  const { db } = state.shared!
  await state.ledger.stage(toStage(2))
  const touch = (on: typeof db, row: number) =>
    on.updateTable('changes').set({ lookups: 1 }).where('row', '=', row).execute()
  const arrived = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
  let tries = 0
  const lockBoth = (mine: 0 | 1) =>
    transact(db, async (transaction) => {
      tries += 1
      await touch(transaction, mine + 1)
      arrived[mine].resolve()
      await arrived[1 - mine]!.promise
      await touch(transaction, 2 - mine)
    })
  await Promise.all([lockBoth(0), lockBoth(1)])
  expect(tries).toBeGreaterThan(2)
})

test('two runs that stage the same keys at once agree on one holder for each', async () => {
  const place = { folder: await temporaryFolder(), database: newDatabase() }
  const states = await Promise.all([openState(place), openState(place), openState(place)])
  onTestFinished(async () => void (await Promise.all(states.map((state) => state.close()))))
  const keys = Array.from({ length: 600 }, (_, index) => index)
  const staged = await Promise.all(
    states.map((state, index) => {
      const changes = keys.map((key) => ({
        row: key + 1,
        key: `${(key * 7 + index * 100) % 600}`,
        body: '{}',
      }))
      return state.ledger.stage({ ...space, run: `run ${index}`, repeats: 'never', changes })
    }),
  )
  expect(staged.reduce((sum, one) => sum + one.staged, 0)).toBe(600)
  for (const one of staged) expect(one.staged + one.held.length).toBe(600)
})

// Last, because it takes the server away from the others.
test('a server that is killed in the middle of claims and comes back is away, and nothing that it confirmed is lost', async () => {
  const state = await openState({ folder: await temporaryFolder(), database: newDatabase() })
  onTestFinished(() => state.close())
  const { ledger } = state
  await ledger.stage(toStage(400))
  const sender = await senderOf(ledger, 'r')
  const rows = await ledger.page({ run: 'r', limit: 400 })
  const claim = async ({ id, row }: (typeof rows)[number]) => {
    await ledger.claim({ sender, id, sends: 0, at: 1 })
    return row
  }
  const confirmed = await Promise.all(rows.slice(0, 100).map(claim))
  const interrupted = Promise.allSettled(rows.slice(100).map(claim))
  // Their transaction has begun.
  await new Promise((resolve) => setImmediate(resolve))
  postgres.killAll()
  const answers = await interrupted
  const failed = answers.filter((one) => one.status === 'rejected')
  expect(failed.length).toBeGreaterThan(0)
  for (const one of answers) if (one.status === 'fulfilled') confirmed.push(one.value)
  for (const { reason } of failed) expect(reason).toMatchObject({ name: 'StateAwayError', retryable: true })
  await postgres.restart()
  const claimed = (await Array.fromAsync(ledger.rows({ run: 'r' }))).filter(({ claims }) => claims > 0)
  const known = new Set(claimed.map(({ row }) => row))
  for (const row of confirmed) expect(known).toContain(row)
  const left = (await ledger.due({ run: 'r', at: 1, limit: 1 }))[0]!
  expect(await ledger.claim({ sender, id: left.id, sends: 0, at: 1 })).toMatchObject({ row: left.row })
})
