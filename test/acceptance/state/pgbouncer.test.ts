import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { describeState } from '../../core/state/contract/state.ts'
import { temporaryFolder } from '../../core/state/temporary-folder.ts'
import { openState } from '../../../core/state/open.ts'
import { createPostgresDestination } from '../../../core/destinations/postgres/postgres.ts'
import { createWorkplace } from '../../core/destinations/publication.ts'
import { readOn } from '../../core/destinations/use-warehouse.ts'
import { password, startPostgres, type Postgres } from '../../system/destinations/postgres-server.ts'
import { connectTemporal, createWorld, startTestWorker } from '../../system/export/world.ts'
import { once as onceEach, quick, retentionsCsv, startImport, timesOf } from '../../system/import/world.ts'
import { openFiles } from '../../../worker/files.ts'
import { readPlaces } from '../../../worker/settings/settings.ts'
import { environmentOf, startGateway } from '../bucket/gateway.ts'
import { findProgram } from '../programs.ts'
import { freePorts } from '../../../worker/free-ports.ts'

/** PgBouncer refuses root. */
const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined

/** Fewer than the connector opens, so that a transaction comes to another session than the one before it. */
const serverSessions = 2

let postgres: Postgres
let bouncer: ChildProcess
let folder: string
let url: string
beforeAll(async () => {
  postgres = await startPostgres()
  const { pathname } = new URL(await postgres.createDatabase())
  folder = await mkdtemp(join(tmpdir(), 'pgbouncer-'))
  const [port] = await freePorts(1)
  await writeFile(join(folder, 'users.txt'), `"postgres" "${password}"\n`)
  const settings = `[databases]
state = host=127.0.0.1 port=${postgres.port} dbname=${pathname.slice(1)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${join(folder, 'users.txt')}
pool_mode = transaction
default_pool_size = ${serverSessions}
`
  await writeFile(join(folder, 'pgbouncer.ini'), settings)
  if (nobody !== undefined) await chown(folder, nobody.uid, nobody.gid)
  const stdio = ['ignore', 'ignore', 'pipe'] as const
  bouncer = spawn(findProgram('pgbouncer'), [join(folder, 'pgbouncer.ini')], { ...nobody, stdio: [...stdio] })
  let log = ''
  await new Promise<void>((resolve, reject) => {
    bouncer.stderr?.setEncoding('utf8').on('data', (text: string) => {
      log += text
      if (log.includes('process up')) resolve()
    })
    bouncer.once('exit', () => reject(new Error(`PgBouncer did not start: ${log}`)))
  })
  url = `postgres://postgres:${encodeURIComponent(password)}@127.0.0.1:${port}/state`
})
afterAll(async () => {
  const ended = once(bouncer, 'exit')
  bouncer.kill('SIGKILL')
  await ended
  await postgres.close()
  await rm(folder, { recursive: true, force: true })
})

let made = 0
const newDatabase = () => ({ url, schema: `connector_acc_${++made}` })

describeState(async () => ({ folder: await temporaryFolder(), database: newDatabase() }))

test('workers that start at once behind PgBouncer agree on one state', async () => {
  const place = { folder: await temporaryFolder(), database: newDatabase() }
  const states = await Promise.all([openState(place), openState(place), openState(place)])
  expect(new Set(states.map(({ storeId }) => storeId)).size).toBe(1)
  await Promise.all(states.map((state) => state.close()))
})

test('a warehouse behind PgBouncer takes one export after the other over the same sessions', async () => {
  const workplace = await createWorkplace()
  onTestFinished(() => workplace.close())
  const warehouse = createPostgresDestination({ url })
  const record = (id: string, day: number) => `{"id":"${id}","updated":"${readOn(day).startedAt}"}`
  // Each but the first shows an older state of one record, and two records under one id.
  for (const day of [1, 2, 3, 4, 5]) {
    const records = [record('a', day === 1 ? 2 : 1), record('b', day), record('b', day)]
    const publication = await workplace.toPublication('customers', [records], {
      run: `day ${day}`,
      facts: readOn(day, { verdict: 'unproven', reasons: ['x'], repeatedIds: ['b'] }),
    })
    const { manifest } = await warehouse.publish(publication)
    expect(manifest.tables[0]).toMatchObject(day === 1 ? { rows: 2 } : { rows: 2, kept: 1 })
  }
})

test('an import behind PgBouncer in transaction mode sends each row once, and is proven', async () => {
  const world = await createWorld({
    counts: { customers: 1, subscriptions: 0, plans: 0, retentions: 0, orders: 0 },
  })
  const gateway = await startGateway()
  onTestFinished(() => gateway.close())
  const fleet = {
    ...environmentOf(gateway.endpoint),
    CONNECTOR_STATE_URL: url,
    CONNECTOR_FILES_URL: `s3://exports/${world.workspace}`,
  }
  await startTestWorker(world, fleet)
  const client = await connectTemporal()
  const file = 'inbox/rows.csv'
  await openFiles(readPlaces({ env: { ...world.env, ...fleet }, cwd: world.dataDir }))?.create(
    file,
    retentionsCsv(60),
  )
  const run = await startImport({ client, world, input: { kind: 'retentions', file, ...quick } })
  expect(await run.result()).toMatchObject({ verdict: 'proven', counts: { done: 60 } })
  expect(timesOf(world, 'retentions', 60)).toEqual(onceEach(60))
})
