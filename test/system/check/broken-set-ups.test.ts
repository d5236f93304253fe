import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { checkAll } from './findings.ts'
import type { RunningWorker } from '../../../worker/start-worker.ts'
import { mayMount } from '../export/full-disk.ts'
import { askPostgres, startPostgres, type Postgres } from '../destinations/postgres-server.ts'
import {
  createNamespace,
  createWorld,
  openTestWorker,
  openWorld,
  startTestWorker,
  workerListens,
  type World,
} from '../export/world.ts'

/** What `check` finds wrong, and its exit code. */
async function check(of: World, env: Record<string, string> = {}) {
  const { code, wrong } = await checkAll(of, env)
  return { code, wrong: wrong.map(({ check, message }) => `${check}: ${message}`) }
}

const finding = (...words: string[]) => {
  const pattern = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('.*')
  return { code: 1, wrong: [expect.stringMatching(new RegExp(pattern))] }
}

async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

// In `default`, runs of other tests may wait for their worker.
let temporal: Awaited<ReturnType<typeof createNamespace>>
let world: World
let worker: RunningWorker
beforeAll(async () => {
  temporal = await createNamespace()
  const counts = { customers: 30, subscriptions: 20, plans: 5, retentions: 10 }
  world = await openWorld({ counts }, temporal)
  worker = await openTestWorker(world)
  await workerListens(world)
})
afterAll(async () => {
  await worker.stop()
  await world.close()
})

test('check finds every wrong setting before it asks anybody, and ends with 2', async () => {
  const env = {
    BILLING_BASE_URL: 'billing',
    BILLING_TOKEN: '',
    BILLING_WORKSPACE: ' ',
    WAREHOUSE_URL: 'mysql://db',
  }
  const { code, wrong } = await check(world, env)
  expect(code).toBe(2)
  expect(wrong.map((one) => String(/^settings: (\w+)/.exec(one)?.[1])).toSorted()).toEqual(
    Object.keys(env).toSorted(),
  )
})

test('check names init where nothing is set yet', async () => {
  const nothing = { BILLING_BASE_URL: '', BILLING_TOKEN: '', BILLING_WORKSPACE: '' }
  const { stdout } = await callCommand(world, ['check'], { env: nothing })
  expect(stdout).toMatch(/\n\nnpx connector init asks for the settings and writes \.env/)
})

test('check finds a file with a secret that other users of the machine can read', async () => {
  const token = join(world.dataDir, 'token')
  await writeFile(token, world.sandbox.token)
  await chmod(token, 0o640)
  const env = { BILLING_TOKEN: '', BILLING_TOKEN_FILE: token }
  expect(await check(world, env)).toEqual(
    finding('secrets: Other users of this machine can read', token, `Fix it with \`chmod go-rwx ${token}\``),
  )
  await chmod(token, 0o600)
  const { findings } = await checkAll(world, env)
  expect(findings.find((one) => one.check === 'secrets')).toMatchObject({
    status: 'ok',
    message: `Nobody else can read ${token}.`,
  })
  expect(await check(world, env)).toEqual({ code: 0, wrong: [] })
})

test('check finds a data folder that other users of the machine can use', async () => {
  const { dataDir } = world
  onTestFinished(() => chmod(dataDir, 0o700))
  for (const mode of [0o755, 0o750, 0o701]) {
    await chmod(dataDir, mode)
    expect(await check(world)).toEqual(
      finding('data folder: Other users of this machine can use the data folder', `\`chmod 700 ${dataDir}\``),
    )
  }
})

describe('check finds at the service', () => {
  test('a page for people where the interface should be', async () => {
    const url = await serve((_, response) => {
      response.setHeader('content-type', 'text/html').end('<!doctype html><h1>Log in</h1>')
    })
    expect(await check(world, { BILLING_BASE_URL: url })).toEqual({
      code: 1,
      wrong: [
        expect.stringMatching(/^service: Unexpected reply to GET \/plans\/.*check BILLING_BASE_URL/),
        // The worker has the right address.
        expect.stringMatching(/^temporal: The worker on .* acts on the service at .*, not http/),
      ],
    })
  })

  test('a redirect, which would carry the token elsewhere', async () => {
    const url = await serve((_, response) => {
      response.writeHead(302, { location: 'https://elsewhere.example.com/login' }).end()
    })
    const { wrong } = await check(world, { BILLING_BASE_URL: url })
    expect(wrong[0]).toMatch(/^service: .*points to https:\/\/elsewhere.*check BILLING_BASE_URL/)
  })

  test('a name that nobody knows', async () => {
    const { wrong } = await check(world, { BILLING_BASE_URL: 'https://billing.invalid' })
    expect(wrong[0]).toMatch(/^service: No connection for GET \/plans\/.*check the address and the network/)
  })

  test('silence, and says meanwhile what it waits for', async () => {
    const env = { BILLING_BASE_URL: await serve(() => undefined), BILLING_TIMEOUT_SECONDS: '0.5' }
    const { stdout, stderr } = await callCommand(world, ['check'], { env })
    expect(stdout).toMatch(/WRONG +service +No complete reply to GET \/plans\//)
    expect(stderr).toContain('Waiting for the service ...\n')
  })

  test.each([
    [3600, 'behind'],
    [-3600, 'ahead of'],
  ])('a clock that is off by %i s', async (clockSkewSeconds, how) => {
    const off = await createWorld({ counts: { plans: 5, customers: 5 }, clockSkewSeconds }, temporal)
    await startTestWorker(off)
    await workerListens(off)
    expect(await check(off)).toEqual(finding('clock: ', `${how} the service's. Enable NTP`))
  })
})

describe('check finds at Temporal', () => {
  test('a namespace that is not there', async () => {
    const { code, wrong } = await check(world, { TEMPORAL_NAMESPACE: 'nowhere' })
    expect(code).toBe(1)
    expect(wrong[0]).toMatch(/^temporal: Temporal at \S+ has no namespace nowhere\. Set TEMPORAL_NAMESPACE/)
  })

  test('a namespace without the search attributes that runs are found by', async () => {
    const bare = await createNamespace({ withAttributes: false })
    const other = await createWorld({ counts: { plans: 5 } }, bare)
    await startTestWorker(other)
    await workerListens(other)
    expect(await check(other)).toEqual(
      finding(
        'search attributes: The namespace',
        'has no search attributes Verdict, NeedsPerson, Resource',
        '`run list --verdict` and `--needs-person` are refused',
      ),
    )
    const { code, stderr } = await callCommand(other, ['run', 'list', '--verdict', 'proven'])
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining(
        'This Temporal server has no search attributes Verdict and NeedsPerson.',
      ),
    })
  })

  test.each([
    'https://localhost:7233',
    'http://127.0.0.1:7233',
    'temporal:7233/',
    'localhost:7233/default',
    '::1',
    ':7233',
    'localhost:70000',
    'user@localhost:7233',
    'grpc://localhost:7233',
  ])('an address that is none: %s', async (address) => {
    const message = `temporal: Temporal's address (TEMPORAL_ADDRESS or a profile) is "${address}", not a host with a port. Write host:port`
    expect((await check(world, { TEMPORAL_ADDRESS: address })).wrong).toContainEqual(
      expect.stringContaining(message),
    )
  })

  test('a worker of the same task queue that acts on the other mode', async () => {
    const other = await createWorld({ counts: { plans: 5 } }, temporal)
    await startTestWorker(other, {}, { taskQueue: `${other.taskQueue}-test` })
    const { wrong } = await check(other, { BILLING_TEST_MODE: 'true' })
    expect(wrong).toEqual([
      expect.stringMatching(
        /^temporal: .*acts on LIVE data, not TEST data.* each its own TEMPORAL_NAMESPACE/,
      ),
    ])
  })
})

describe('check finds at the data folder', () => {
  test('another process that holds it and does not answer here', async () => {
    const other = await createWorld({ counts: { plans: 5 } }, temporal)
    await startTestWorker(other, {}, { taskQueue: `other-${other.workspace}` })
    const { code, wrong } = await check(other)
    expect(code).toBe(1)
    expect(wrong).toEqual([
      expect.stringMatching(/^temporal: No worker listens on the task queue/),
      expect.stringMatching(
        new RegExp(`^data folder: .* is in use by the worker with pid ${process.pid}, which does not answer`),
      ),
    ])
  })

  test('a state that is damaged', async () => {
    const damaged = await createWorld({ counts: { plans: 5 } }, temporal)
    const first = await openTestWorker(damaged)
    await first.stop()
    await writeFile(join(damaged.dataDir, 'state.db'), 'no database '.repeat(1000))
    const { wrong } = await check(damaged)
    expect(wrong).toContainEqual(expect.stringMatching(/^data folder: .*state\.db is damaged.*backup/))
  })

  test('a ledger that is older than what was sent, or gone', async () => {
    const restored = await createWorld({ counts: { plans: 5 } }, temporal)
    const first = await openTestWorker(restored)
    await first.stop()
    await writeFile(join(restored.dataDir, 'state.claims'), '2\n')
    const old = expect.stringMatching(/^data folder: .* lacks 2 of 2 claims.*npx connector state repair/)
    expect((await check(restored)).wrong).toContainEqual(old)
    await rm(join(restored.dataDir, 'state.db'))
    expect((await check(restored)).wrong).toContainEqual(old)
  })

  test.runIf(mayMount())('a disk that is full, or nearly', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'check-'))
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=40m,mode=700', 'tmpfs', folder])
    onTestFinished(async () => {
      execFileSync('umount', ['-l', folder])
      await rm(folder, { recursive: true })
    })
    const look = async () => (await check(world, { CONNECTOR_DATA_DIR: folder })).wrong.at(-1)
    expect(await look()).toMatch(/^data folder: Only \d\d MB are free on the disk of .*Free some/)
    // It ends where there is no more room, and says so by its exit code.
    spawnSync('dd', ['if=/dev/zero', `of=${join(folder, 'rest')}`, 'bs=4k'])
    expect(await look()).toMatch(/^data folder: .*can't be written: .*full.*CONNECTOR_DATA_DIR/)
  })
})

describe('check finds at the warehouse', () => {
  let postgres: Postgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(() => postgres.close())

  const look = async (url: string) => {
    const { wrong } = await check(world, { WAREHOUSE_URL: url })
    // The worker runs without a warehouse.
    return wrong.filter((one) => !one.startsWith('worker: ')).join('\n') || 'nothing'
  }

  test('nothing where it can be written', async () => {
    const url = await postgres.createDatabase()
    expect(await look(url)).toBe('nothing')
    expect(await askPostgres(url, "select 1 as left from pg_namespace where nspname = 'billing'")).toEqual([])
  })

  test('nothing while the first publication creates the schema', async () => {
    const url = await postgres.createDatabase()
    const publication = new Client({ connectionString: url })
    await publication.connect()
    await publication.query(
      `begin; select pg_advisory_xact_lock(hashtextextended('connector billing', 0)); create schema billing`,
    )
    const seen = look(url)
    await vi.waitFor(async () => {
      const waiting = await askPostgres(url, `select 1 as one from pg_locks where not granted`)
      expect(waiting).toHaveLength(1)
    }, 30_000)
    await publication.query('commit')
    await publication.end()
    expect(await seen).toBe('nothing')
  })

  test.each<[string, () => string, RegExp]>([
    [
      'no such database',
      () => postgres.toUrl('nowhere'),
      /"nowhere" does not exist\. Nothing was written; correct WAREHOUSE_URL, and restart the worker\.$/,
    ],
    [
      'a wrong password',
      () => postgres.toUrl('postgres', 'postgres', 'wrong'),
      /password authentication failed for user "postgres"\. Nothing was written; correct WAREHOUSE_URL, and restart the worker\.$/,
    ],
    [
      'nobody who answers',
      () => 'postgres://postgres:secret@127.0.0.1:1/billing',
      /^warehouse: Can't reach PostgreSQL .*ECONNREFUSED.*\. Nothing was written; start it, or correct WAREHOUSE_URL, and check again\.$/,
    ],
  ])('%s', async (_, url, says) => {
    const said = await look(url())
    expect(said).toMatch(says)
    expect(said).not.toMatch(/secret|export/)
  })

  test.each([
    [
      'a user that may not create tables',
      'revoke create on schema public from public',
      'Nothing was written; the user needs the right to create',
    ],
    [
      'a role that may only read',
      'alter role odd set default_transaction_read_only = on; grant all on database DB to odd',
      'PostgreSQL is read-only for schema billing of',
    ],
    [
      'a database without temporary tables',
      'revoke temporary on database DB from public; grant create on database DB to odd',
      'permission denied to create temporary tables in database',
    ],
    [
      'a schema that may be used, and nothing created in it',
      'create schema billing; grant usage on schema billing to odd; grant all on database DB to odd',
      'permission denied for schema billing',
    ],
    [
      'a schema in which tables may be created, and not used',
      'create schema billing; grant create on schema billing to odd; grant all on database DB to odd',
      'permission denied for schema billing',
    ],
    [
      'tables of another owner',
      `create schema billing; grant all on schema billing to odd;
        create table billing._warehouse as select 'WORKSPACE' as workspace, 'BASE_URL' as base_url, 'live' as mode;
        grant all on billing._warehouse to odd`,
      'must be owner of table _warehouse',
    ],
  ])('%s', async (_, prepare, says) => {
    const url = await postgres.createDatabase()
    const database = new URL(url).pathname.slice(1)
    const { BILLING_WORKSPACE: workspace, BILLING_BASE_URL: baseUrl } = world.env
    const sql = prepare
      .replaceAll('DB', database)
      .replace('WORKSPACE', workspace)
      .replace('BASE_URL', baseUrl)
    await askPostgres(url, `create role odd login password 'odd'; ${sql}`)
    try {
      expect(await look(postgres.toUrl(database, 'odd', 'odd'))).toContain(says)
    } finally {
      await askPostgres(postgres.toUrl('postgres'), `alter database ${database} reset all`)
      await askPostgres(url, 'begin read write; drop owned by odd; drop role odd; commit')
    }
  })

  test('a read replica', async () => {
    const replica = await startPostgres()
    onTestFinished(() => replica.close())
    await replica.becomeReplica()
    expect(await look(replica.toUrl('postgres'))).toMatch(
      /^warehouse: PostgreSQL is read-only for schema billing of .* Nothing was written; name the primary server and a user that may write in WAREHOUSE_URL\.$/,
    )
  })

  test('the warehouse of another workspace', async () => {
    const url = await postgres.createDatabase()
    await askPostgres(
      url,
      `create schema billing; create table billing._warehouse as
        select 'acc_else' as workspace, 'https://x.example' as base_url, 'live' as mode`,
    )
    expect(await look(url)).toMatch(/^warehouse: .*holds another warehouse \(workspace acc_else, not acc_/)
  })
})
