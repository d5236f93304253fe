import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { findServerProblems } from '../../../core/state/postgres/server-problems.ts'
import { openState } from '../../../core/state/open.ts'
import { temporaryFolder } from '../../core/state/temporary-folder.ts'
import { askPostgres, startPostgres, type Postgres } from '../destinations/postgres-server.ts'

let postgres: Postgres
let url: string
beforeAll(async () => {
  postgres = await startPostgres()
  url = await postgres.createDatabase()
})
afterAll(() => postgres.close())

test('a server that does not wait for the disk is refused', async () => {
  const unsafe = await startPostgres({ unsafe: true })
  onTestFinished(() => unsafe.close())
  const database = { url: await unsafe.createDatabase(), schema: 'connector_acc' }
  await expect(openState({ folder: await temporaryFolder(), database })).rejects.toMatchObject({
    name: 'UnsafeServerError',
    message: expect.stringMatching(/fsync = off, so a crash of its machine can lose what was sent/),
    retryable: false,
  })
})

test('settings of the user that the guarantees do not allow are one sentence each', async () => {
  const folder = await temporaryFolder()
  const database = { url, schema: 'connector_settings' }
  const opened = await openState({ folder, database })
  await opened.close()
  await askPostgres(postgres.toUrl('postgres'), `create role hasty login password 'hasty' superuser`)
  await askPostgres(
    postgres.toUrl('postgres'),
    `alter role hasty set synchronous_commit = off; alter role hasty set statement_timeout = '900ms';
      alter role hasty set lock_timeout = '1s'; alter role hasty set idle_in_transaction_session_timeout = '2s';
      alter role hasty set transaction_timeout = '4s'; alter role hasty set default_transaction_read_only = on`,
  )
  const hasty = {
    url: postgres.toUrl(new URL(url).pathname.slice(1), 'hasty', 'hasty'),
    schema: database.schema,
  }
  const reader = await openState({ folder, database: hasty, readOnly: true })
  onTestFinished(() => reader.close())
  const ahead = { ...reader.shared!, now: () => Date.now() + 90_000 }
  expect(await findServerProblems(ahead)).toEqual([
    expect.stringContaining('synchronous_commit is off for this user'),
    expect.stringMatching(/^The statement_timeout of the user .* is 900 ms; set it to at least 30 s\.$/),
    expect.stringMatching(/^The lock_timeout of the user .* is 1000 ms; set it to at least 5 s\.$/),
    expect.stringMatching(
      /^The idle_in_transaction_session_timeout .* is 2000 ms; set it to at least 10 s\.$/,
    ),
    expect.stringMatching(/^The transaction_timeout of the user .* is 4000 ms; set it to at least 30 s\.$/),
    expect.stringContaining('may only read (default_transaction_read_only)'),
    expect.stringContaining('The clock of PostgreSQL is 90 s ahead of this machine.'),
  ])
  await expect(openState({ folder, database: hasty })).rejects.toThrow('synchronous_commit is off')
})
