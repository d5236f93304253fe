import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { NoStateError, StateUnreadableError } from '../../../core/state/errors.ts'
import { readStateFile } from '../../../core/state/sqlite.ts'
import { openSqliteStore } from '../../../core/state/sqlite.ts'
import { openState } from '../../../core/state/open.ts'
import { describeState } from './contract/state.ts'
import { temporaryFolder } from './temporary-folder.ts'

describeState(async () => ({ folder: await temporaryFolder() }))

test('a newer or an earlier schema is refused with a sentence, and an empty file has nothing to read', async () => {
  const folder = await temporaryFolder()
  const refusal = async () => {
    const opened = await openState({ folder }).catch((error: unknown) => error)
    expect(() => readStateFile(folder)).toThrow(opened instanceof Error ? opened.message : '')
    return opened
  }
  expect(() => readStateFile(folder)).toThrow(NoStateError)
  new DatabaseSync(join(folder, 'state.db')).close()
  expect(() => readStateFile(folder)).toThrow(NoStateError)
  await expect(openState({ folder, readOnly: true })).rejects.toBeInstanceOf(NoStateError)
  await (await openState({ folder })).close()
  using database = new DatabaseSync(join(folder, 'state.db'))
  database.exec('update store set version = 99')
  expect(await refusal()).toMatchObject({ name: 'StateTooNewError' })
  expect(String(await refusal())).toContain('99')
  database.exec('alter table store drop column version')
  expect(await refusal()).toMatchObject({ name: 'StateTooOldError' })
})

test('waits for the disk at each commit, in a new file and in one that is opened again', async () => {
  const folder = await temporaryFolder()
  for (let opened = 0; opened < 2; opened += 1) {
    const store = await openSqliteStore({ folder, readOnly: false })
    const { rows } = await sql<{ synchronous: number }>`pragma synchronous`.execute(store.db)
    // SQLite's number of `full`.
    expect(rows).toEqual([{ synchronous: 2 }])
    await store.close()
  }
})

test('says what is wrong with a file that is not a database, a folder that is a file, and a missing state', async () => {
  const folder = await temporaryFolder()
  await writeFile(join(folder, 'state.db'), 'this is not a database, however long it may be'.repeat(100))
  await expect(openState({ folder })).rejects.toMatchObject({ name: 'StateCorruptError' })
  await expect(openState({ folder: join(folder, 'state.db') })).rejects.toBeInstanceOf(StateUnreadableError)
  await expect(openState({ folder: join(folder, 'none'), readOnly: true })).rejects.toBeInstanceOf(
    NoStateError,
  )
})

test('says what to look at where a file takes no writes', async () => {
  const folder = await temporaryFolder()
  await (await openState({ folder })).close()
  const reader = await openState({ folder, readOnly: true })
  const owner = { workflowId: 'w', runId: 'r' }
  await expect(reader.leases.take({ name: 'n', owner, isClosed: async () => false })).rejects.toThrow(
    "can't be written: it is read-only. Check its permissions and how its disk is mounted.",
  )
  await reader.close()
})

test('calls a full disk a full disk, also in a transaction, which SQLite then rolls back by itself', async () => {
  const store = await openSqliteStore({ folder: await temporaryFolder(), readOnly: false })
  // SQLite gives the very same code for its own limit of pages as for a disk without room.
  await sql`pragma max_page_count = 2`.execute(store.db)
  const long = 'x'.repeat(1_000_000)
  const filling = store.db
    .transaction()
    .execute((inside) =>
      sql`insert into store (id, version, created_at) values (${long}, 1, 1)`.execute(inside),
    )
  await expect(filling).rejects.toMatchObject({ name: 'DiskFullError' })
  await store.close()
})

test('the id of a state is read without opening it', async () => {
  const folder = await temporaryFolder()
  const state = await openState({ folder })
  expect(readStateFile(folder)).toBe(state.storeId)
  await state.close()
  await writeFile(join(folder, 'state.db'), 'this is not a database, however long it may be'.repeat(100))
  expect(() => readStateFile(folder)).toThrow(expect.objectContaining({ name: 'StateCorruptError' }))
})
