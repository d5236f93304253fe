import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Kysely, SqliteDialect, sql } from 'kysely'
import { expect, test } from 'vitest'
import {
  DiskFullError,
  StateCorruptError,
  StateTooNewError,
  StateTooOldError,
  StateUnreadableError,
  toStateError,
} from '../../../core/state/errors.ts'
import { up as firstMigration } from '../../../core/state/migrations/sqlite/0001-first.ts'
import { checkStateFile } from '../../../core/state/sqlite/check-state-file.ts'
import { nodeSqlite } from '../../../core/state/sqlite/node-sqlite.ts'
import { readSqliteStoreId } from '../../../core/state/sqlite/store-id.ts'
import { openSqliteStore } from '../../../core/state/sqlite/sqlite-store.ts'
import { openState } from '../../../core/state/open.ts'
import { describeState } from './contract/state.ts'
import { temporaryFolder } from './temporary-folder.ts'

const space = { workspace: 'acc_1', mode: 'live', kind: 'create-addon' } as const
describeState(async () => ({ folder: await temporaryFolder() }))

test('refuses a newer schema with a sentence', async () => {
  const folder = await temporaryFolder()
  await (await openState({ folder })).close()
  const database = new DatabaseSync(join(folder, 'state.db'))
  database.exec(`insert into kysely_migration values ('0999-from-the-future', '2030-01-01')`)
  database.close()
  const error = await openState({ folder }).catch((error: unknown) => error)
  expect(error).toBeInstanceOf(StateTooNewError)
  expect(String(error)).toContain('0999-from-the-future')
})

test('counts the resumes of a ledger from before attempts were a hard bound', async () => {
  const folder = await temporaryFolder()
  const first = await openState({ folder })
  const kind = 'resume-subscription'
  const body = (resumes: number) => JSON.stringify({ snapshot: { since: '', resumes } })
  const changes = [
    { row: 1, key: 'sub_1', body: body(3) },
    { row: 2, key: 'sub_2', body: '{"snapshot":{}}' },
  ]
  await first.ledger.stage({ ...space, kind, run: 'r', repeats: 'always', changes })
  await first.close()
  const database = new DatabaseSync(join(folder, 'state.db'))
  database.exec(`update changes set attempts = 1, sends = 2;
    alter table watermarks drop column seen_claims;
    delete from kysely_migration where name >= '0002'`)
  database.close()
  const second = await openState({ folder })
  const history = await second.ledger.history({ ...space, kind, keys: ['sub_1', 'sub_2'] })
  expect([...history.values()].map(({ attempts }) => attempts)).toEqual([5, 2])
  await second.close()
})

test('keeps the leases and the changes of a file from before their columns were renamed', async () => {
  const folder = await temporaryFolder()
  const file = join(folder, 'state.db')
  const database = new DatabaseSync(file)
  const old = new Kysely<unknown>({
    dialect: new SqliteDialect({ database: nodeSqlite({ database, file }) }),
  })
  await firstMigration(old)
  database.exec(`
    insert into claims values ('import r', 'wf', 'run', 1);
    insert into changes (run, row, workspace, mode, kind, key, generation, holds_key, lane, body, state, claims, sends,
      attempts, not_before, looks, looked_at)
    values ('r', 1, 'acc', 'live', 'create-addon', 'k', 0, 1, 'gateway_issue', '{}', 'unknown', 2, 2, 0, 0, 1, 7)`)
  await old.destroy()
  const state = await openState({ folder })
  expect(await state.leases.holder({ name: 'import r' })).toEqual({ workflowId: 'wf', runId: 'run' })
  const row = { state: 'unknown', breakerKey: 'gateway_issue', lookups: 1, checkedAt: 7, claims: 2 }
  expect(await state.ledger.row({ run: 'r', row: 1 })).toMatchObject(row)
  await state.close()
})

test('knows what the service stored differently, in a file from before that outcome was renamed', async () => {
  const folder = await temporaryFolder()
  const first = await openState({ folder })
  const changes = [{ row: 1, key: 'k', body: '{}' }]
  await first.ledger.stage({ ...space, run: 'r', repeats: 'never', changes })
  await first.close()
  const database = new DatabaseSync(join(folder, 'state.db'))
  database.exec(`update changes set state = 'done', outcome = 'storedOtherwise';
    alter table watermarks drop column seen_claims;
    delete from kysely_migration where name >= '0009'`)
  database.close()
  const second = await openState({ folder })
  expect(await second.ledger.row({ run: 'r', row: 1 })).toMatchObject({ outcome: 'storedDifferently' })
  await second.close()
})

test('does not bring an older schema up to date for a reader', async () => {
  const folder = await temporaryFolder()
  new DatabaseSync(join(folder, 'state.db')).close()
  await expect(openState({ folder, readOnly: true })).rejects.toBeInstanceOf(StateTooOldError)
})

test('what only looks at the version of a file accepts its own, and refuses as opening does', async () => {
  const folder = await temporaryFolder()
  const refusal = () => {
    try {
      checkStateFile(folder)
      return undefined
    } catch (error) {
      return error
    }
  }
  expect(refusal()).toBeInstanceOf(StateUnreadableError)
  await (await openState({ folder })).close()
  expect(refusal()).toBeUndefined()
  const database = new DatabaseSync(join(folder, 'state.db'))
  database.exec(`insert into kysely_migration values ('0999-from-the-future', '2030-01-01')`)
  expect(refusal()).toBeInstanceOf(StateTooNewError)
  database.exec(`delete from kysely_migration where name >= '0009'`)
  expect(refusal()).toBeInstanceOf(StateTooOldError)
  database.close()
  await writeFile(join(folder, 'state.db'), 'this is not a database, however long it may be'.repeat(100))
  expect(refusal()).toBeInstanceOf(StateCorruptError)
})

test('waits for the disk at each commit, in a new file and in one that is opened again', async () => {
  const folder = await temporaryFolder()
  for (let opened = 0; opened < 2; opened += 1) {
    const store = await openSqliteStore({ folder, file: join(folder, 'state.db'), readOnly: false })
    const { rows } = await sql<{ synchronous: number }>`pragma synchronous`.execute(store.db)
    // SQLite's number of `full`.
    expect(rows).toEqual([{ synchronous: 2 }])
    await store.close()
  }
})

test('says what is wrong with a file that is no database, a folder that is a file, and a missing state', async () => {
  const folder = await temporaryFolder()
  await writeFile(join(folder, 'state.db'), 'this is not a database, however long it may be'.repeat(100))
  await expect(openState({ folder })).rejects.toBeInstanceOf(StateCorruptError)
  await expect(openState({ folder: join(folder, 'state.db') })).rejects.toBeInstanceOf(StateUnreadableError)
  await expect(openState({ folder: join(folder, 'none'), readOnly: true })).rejects.toBeInstanceOf(
    StateUnreadableError,
  )
})

test('calls a full disk a full disk', async () => {
  const folder = await temporaryFolder()
  const file = join(folder, 'small.db')
  const database = new DatabaseSync(file)
  // SQLite gives the very same code for its own limit of pages as for a disk without room.
  database.exec('create table t (x text); pragma max_page_count = 2')
  const fill = () => database.prepare('insert into t values (?)').run('x'.repeat(100_000))
  let error: unknown
  try {
    fill()
  } catch (cause) {
    error = toStateError({ file, cause })
  }
  database.close()
  expect(error).toBeInstanceOf(DiskFullError)
})

// In seconds of the processor, which other work on the machine does not lengthen.
test('stages 100,000 changes in well under ten seconds', { timeout: 120_000, tags: ['long'] }, async () => {
  const state = await openState({ folder: await temporaryFolder() })
  const { ledger } = state
  const body = JSON.stringify({ supplier: 'sup_1', document: 7, date: '2026-10-01', note: 'x'.repeat(300) })
  const started = process.cpuUsage()
  for (let from = 0; from < 100_000; from += 2_000) {
    const changes = Array.from({ length: 2_000 }, (_, index) => ({
      row: from + index + 1,
      key: `k${from + index + 1}`,
      body,
    }))
    await ledger.stage({ ...space, run: 'big', repeats: 'never', changes })
  }
  const { user, system } = process.cpuUsage(started)
  const seconds = (user + system) / 1e6
  console.log(`staged 100,000 changes in ${seconds.toFixed(2)} s of the processor`)
  expect(await ledger.counts({ run: 'big' })).toMatchObject([{ state: 'staged', number: 100_000 }])
  expect(seconds).toBeLessThan(10)
  await state.close()
})

test('the id of a state is read without opening it, and only where there is one', async () => {
  const folder = await temporaryFolder()
  expect(readSqliteStoreId(folder)).toBeUndefined()
  const state = await openState({ folder })
  try {
    expect(readSqliteStoreId(folder)).toBe(state.storeId)
  } finally {
    await state.close()
  }
  await writeFile(join(folder, 'state.db'), 'not a database')
  expect(readSqliteStoreId(folder)).toBeUndefined()
})
