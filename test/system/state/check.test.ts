import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { findServerProblems } from '../../../core/state/postgres/server-problems.ts'
import { openState } from '../../../core/state/open.ts'
import { temporaryFolder } from '../../core/state/temporary-folder.ts'
import { callCommand } from '../command-line/call-command.ts'
import { askPostgres, startPostgres, type Postgres } from '../destinations/postgres-server.ts'
import { openWorld, type World } from '../export/world.ts'

let postgres: Postgres
let url: string
let world: World
beforeAll(async () => {
  postgres = await startPostgres()
  url = await postgres.createDatabase()
  world = await openWorld({ counts: { customers: 3, subscriptions: 0, plans: 1, retentions: 1 } })
})
afterAll(async () => {
  await postgres.close()
  await world.close()
})

interface Finding {
  check: string
  status: string
  message: string
}

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
      alter role hasty set default_transaction_read_only = on`,
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
    expect.stringContaining('may only read (default_transaction_read_only)'),
    expect.stringContaining('The clock of PostgreSQL is 90 s ahead of this machine.'),
  ])
  await expect(openState({ folder, database: hasty })).rejects.toThrow('synchronous_commit is off')
})

/** A service that closes idle connections after this long. */
async function serveIdle(idleMs: number): Promise<string> {
  const server = createServer((_, response) => response.writeHead(401).end())
  server.keepAliveTimeout = 0
  server.on('connection', (socket) => socket.setTimeout(idleMs, () => socket.destroy()))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('check --idle measures how long the service keeps idle connections, and warns if it is longer than the lookups', async () => {
  const check = async (idleMs: number) => {
    const env = { BILLING_BASE_URL: await serveIdle(idleMs), BILLING_SETTLE_SECONDS: '1' }
    const { code, stdout } = await callCommand(world, ['check', '--idle', '--json'], { env })
    const { findings } = JSON.parse(stdout) as { findings: Finding[] }
    return { code, message: findings[0]?.message }
  }
  const [short, long] = [await check(200), await check(60_000)]
  expect(short).toEqual({
    code: 0,
    message: expect.stringMatching(
      /^The service closes an idle connection after 0\.\d s, after a request 0\.\d s; a row is sent again after 3\.0 s/,
    ),
  })
  expect(long).toEqual({
    code: 1,
    message: expect.stringMatching(/open for more than 3\.0 s.*Raise BILLING_SETTLE_SECONDS/),
  })
})
