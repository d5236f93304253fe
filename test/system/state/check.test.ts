import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { findServerProblems } from '../../../core/state/postgres/server-problems.ts'
import { openState } from '../../../core/state/open.ts'
import { temporaryFolder } from '../../core/state/temporary-folder.ts'
import { callCommand } from '../command-line/call-command.ts'
import { askPostgres, password, startPostgres, type Postgres } from '../destinations/postgres-server.ts'
import { createWorld, openTestWorker, openWorld, startTestWorker, type World } from '../export/world.ts'

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

/** What `check` says of the state. */
async function checkState(of: World, stateUrl: string): Promise<string[]> {
  const env = { CONNECTOR_STATE_URL: stateUrl }
  const { stdout, stderr } = await callCommand(of, ['check', '--json'], { env })
  for (const text of [stdout, stderr]) expect(text).not.toContain(encodeURIComponent(password))
  const { findings } = JSON.parse(stdout) as { findings: Finding[] }
  const found = findings.filter(({ check }) => check === 'state')
  for (const { message } of found) expect(message).toMatch(/^[A-Z].*\S\.$/)
  return found.map(({ status, message }) => `${status}: ${message}`)
}

/** What a worker says that does not start. */
const startFailure = (of: World, stateUrl: string) =>
  openTestWorker(of, { CONNECTOR_STATE_URL: stateUrl }).then(
    () => 'started',
    (error: Error) => error.message,
  )

test('check names the state on PostgreSQL before and after the worker creates it', async () => {
  const of = await createWorld({ counts: { customers: 3 } })
  expect(await checkState(of, url)).toEqual([
    expect.stringMatching(/^ok: There is no state in the schema .* yet/),
  ])
  await startTestWorker(of, { CONNECTOR_STATE_URL: url })
  expect(await checkState(of, url)).toEqual([
    expect.stringMatching(
      /^ok: The state in the schema .* is writable; it is used by \d+@\S+ \(seen \d+ s ago\)\.$/,
    ),
  ])
  const elsewhere = await createWorld({ workspace: of.workspace })
  Object.assign(elsewhere.env, { BILLING_WORKSPACE: of.workspace })
  const bound = expect.stringMatching(/are in .* on .*, not in /)
  expect(await checkState(elsewhere, url)).toEqual([bound])
  expect(await startFailure(elsewhere, url)).toEqual(bound)
})

test('a server that does not wait for the disk is refused, by check and at the start', async () => {
  const unsafe = await startPostgres({ unsafe: true })
  onTestFinished(() => unsafe.close())
  const stateUrl = await unsafe.createDatabase()
  const refusal = /fsync = off, so a crash of its machine can lose what was sent/
  expect(await startFailure(world, stateUrl)).toMatch(refusal)
  const reader = {
    folder: world.dataDir,
    database: { url: stateUrl, schema: `connector_${world.workspace}` },
  }
  await expect(openState(reader)).rejects.toMatchObject({ name: 'UnsafeServerError', retryable: false })
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

test(
  'a user without rights and a state that was not moved are refused by check and at the start',
  { tags: ['long'] },
  async () => {
    const of = await createWorld({ counts: { customers: 3 } })
    await askPostgres(postgres.toUrl('postgres'), `create role guest login password 'guest'`)
    const guest = postgres.toUrl(new URL(url).pathname.slice(1), 'guest', 'guest')
    expect(await checkState(of, guest)).toEqual([
      expect.stringMatching(/^wrong: PostgreSQL refuses the connector/),
    ])
    expect(await startFailure(of, guest)).toMatch(/^PostgreSQL refuses the connector/)
    const embedded = await openState({ folder: of.dataDir })
    await embedded.close()
    const unmoved = expect.stringContaining('has a state of its own (state.db)')
    expect(await checkState(of, url)).toEqual([unmoved])
    expect(await startFailure(of, url)).toEqual(unmoved)
    const moved = await callCommand(of, ['move-state'], { env: { CONNECTOR_STATE_URL: url } })
    expect(moved).toMatchObject({ code: 0, stdout: expect.stringContaining('Moved the state to the schema') })
    expect((await callCommand(of, ['check', '--json'])).stdout).toContain(
      'set CONNECTOR_STATE_URL to that database',
    )
    expect(await startFailure(of, '')).toContain('set CONNECTOR_STATE_URL to that database')
    expect(await callCommand(of, ['move-state'])).toMatchObject({ code: 2 })
    expect(await checkState(of, url)).toEqual([expect.stringMatching(/^ok: The state in the schema/)])
  },
)

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

test('a bucket that is missing is said once, by its own check', async () => {
  const of = await createWorld({ counts: { customers: 3 } })
  await startTestWorker(of, { CONNECTOR_STATE_URL: url })
  const store = createServer((_, response) => {
    response.writeHead(404, { 'content-type': 'application/xml' })
    response.end('<Error><Code>NoSuchBucket</Code></Error>')
  }).listen(0, '127.0.0.1')
  await once(store, 'listening')
  onTestFinished(() => void store.close())
  const env = {
    CONNECTOR_STATE_URL: url,
    CONNECTOR_FILES_URL: 's3://nowhere/exports',
    AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${(store.address() as AddressInfo).port}`,
    AWS_ACCESS_KEY_ID: 'x',
    AWS_SECRET_ACCESS_KEY: 'x',
    AWS_REGION: 'us-east-1',
  }
  const { stdout } = await callCommand(of, ['check', '--json'], { env })
  const { findings } = JSON.parse(stdout) as { findings: Finding[] }
  const wrong = findings
    .filter(({ status }) => status === 'wrong')
    .map(({ check, message }) => `${check}: ${message}`)
  expect(wrong.filter((one) => /^(temporal|data folder): /.test(one))).toEqual([])
  expect(wrong).toContainEqual(expect.stringMatching(/^bucket: There is no bucket nowhere/))
})

test('a read replica is no place for a state', async () => {
  const server = await startPostgres()
  onTestFinished(() => server.close())
  const stateUrl = await server.createDatabase()
  const of = await createWorld({ counts: { customers: 3 } })
  const worker = await openTestWorker(of, { CONNECTOR_STATE_URL: stateUrl })
  await worker.stop()
  await server.becomeReplica()
  expect(await checkState(of, stateUrl)).toEqual([
    expect.stringMatching(/^wrong: The server of the schema .* is a read replica; name the primary\.$/),
  ])
})
