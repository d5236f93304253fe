import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { expect, onTestFinished, test } from 'vitest'
import { askPostgres } from '../../system/destinations/postgres-server.ts'
import { callCommand } from '../../system/command-line/call-command.ts'
import {
  connectTemporal,
  createWorld,
  startCommand,
  startTestWorker,
  until,
} from '../../system/export/world.ts'
import { addonsCsv, once, posts, putFile, quick, startImport, timesOf } from '../../system/import/world.ts'
import { breakSome, idsOf, resumesDone, well } from '../../system/recovery/world.ts'
import { startFaultProxy } from './fault-proxy.ts'
import { createFleet } from './fleet-world.ts'
import { environmentOf } from './gateway.ts'

const fleet = createFleet()
const { startMember, startMachine, forgetWorkers, openStore, newMachine } = fleet

/** Fails if the run ends before. */
const duringRun = (run: { result(): Promise<unknown> }, condition: () => boolean) =>
  Promise.race([
    until(condition),
    run.result().then((result) => {
      throw new Error(`ended before: ${JSON.stringify(result)}`)
    }),
  ])

const counts = { customers: 1, subscriptions: 0, plans: 0, retentions: 0, orders: 0 }
const slow = [{ kind: 'latency', ms: 200 }] as const

test('a ledger that PostgreSQL got back from a backup sends nothing until it is repaired, and no row twice then', async () => {
  const count = 30
  const world = await createWorld({ counts, faults: [...slow] })
  const first = await startMachine(world)
  const client = await connectTemporal()
  await openStore(world).create('inbox/rows.csv', addonsCsv(count))
  const run = await startImport({
    client,
    world,
    input: { kind: 'addons', file: 'inbox/rows.csv', ...quick, approval: true },
  })
  const schema = `connector_${world.workspace}`
  const ask = (text: string) => askPostgres(fleet.stateUrl, text)
  await until(
    async () => Number((await ask(`select count(*) as n from ${schema}.changes`))?.[0]?.n) === count,
  )
  await until(async () => (await run.query<{ waitingFor?: object }>('status')).waitingFor !== undefined)
  await ask(`create table ${schema}.backup as select * from ${schema}.changes`)
  await run.executeUpdate('approve', { args: [{ by: 'Ana', why: 'checked' }] })
  // The canary has been sent, and what was claimed is reported.
  await duringRun(run, () => posts(world) >= 12)
  await first.lose()
  await ask(`delete from ${schema}.changes`)
  await ask(`insert into ${schema}.changes overriding system value select * from ${schema}.backup`)
  world.sandbox.control.setFaults({ faults: [] })
  const sent = posts(world)
  const refusing = await startMember(world)
  await until(async () => {
    const { raw } = await run.describe()
    const failures = raw.pendingActivities?.map(({ lastFailure }) => lastFailure?.message)
    return failures?.some((message) => message?.includes('is older than what was sent')) ?? false
  })
  const machine = await newMachine(world)
  const repair = () => callCommand(world, ['state', 'repair'], { env: machine })
  expect(await repair()).toMatchObject({ code: 2, stderr: expect.stringContaining('End all workers first') })
  await refusing.stop()
  await forgetWorkers(world)
  expect(await repair()).toMatchObject({ code: 0 })
  await startMember(world)
  expect(await run.result()).toMatchObject({ verdict: 'unproven', counts: { parked: count } })
  expect(posts(world), 'requests after the loss').toBe(sent)
})

test('a machine with nothing but the two addresses imports, follows, reports and resolves, whatever worker is lost', async () => {
  const count = 24
  const world = await createWorld({ counts, faults: [...slow] })
  const more = { BILLING_SETTLE_SECONDS: '0.3' }
  const first = await startMachine(world, more)
  const third = await newMachine(world)
  const file = join(world.dataDir, 'addons.csv')
  await writeFile(file, addonsCsv(count))
  const command = startCommand(world, ['import', 'addons', file, '--json'], { env: third })
  await until(() => posts(world) >= 8)
  await first.lose()
  world.sandbox.control.setFaults({ faults: [] })
  const second = await startMember(world, more)
  const { code, stdout, stderr } = await command.ended
  // What was in flight may have been made: nobody can look it up, so a person decides.
  expect({ code, stderr }).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('import-addons-addons-'),
  })
  const report = JSON.parse(stdout) as { run: string; files: { results: string; parked: string } }
  const { run } = report
  const rowsIn = async (path: string) =>
    parse<Record<string, string>>(await readFile(path, 'utf8'), { columns: true })
  expect(await rowsIn(report.files.results)).toHaveLength(count)
  const parked = (await rowsIn(report.files.parked)).map(({ _row }) => _row)
  expect(parked.length).toBeGreaterThan(0)
  expect(timesOf(world, 'addons', count).every((times) => times <= 1)).toBe(true)

  const fourth = await newMachine(world)
  const call = (...words: string[]) => callCommand(world, words, { env: fourth })
  expect(
    await call('run', 'resolve', run, '--rows', parked.join(','), '--drop', '--why', 'made by hand'),
  ).toMatchObject({
    code: 0,
  })
  expect(await call('run', 'watch', run)).toMatchObject({
    stdout: expect.stringContaining('resolved by a person'),
  })
  expect(await call('run', 'show', run)).toMatchObject({ code: 0 })
  const again = await call('run', 'report', run, '--json')
  const later = JSON.parse(again.stdout) as { counts: object; files: { results: string } }
  expect(later.counts).toMatchObject({ parked: 0, skipped: parked.length, done: count - parked.length })
  expect(later.files.results).toMatch(new RegExp(`^${fourth.CONNECTOR_DATA_DIR}`))
  expect(await rowsIn(later.files.results)).toHaveLength(count)

  // PostgreSQL is put back to before the import, while no worker runs.
  await second.stop()
  const changes = `connector_${world.workspace}.changes`
  await askPostgres(fleet.stateUrl, `delete from ${changes}`)
  await forgetWorkers(world)
  const repaired = await call('state', 'repair')
  expect(repaired).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`${run}: ${count} rows staged again`),
  })
  const states = await askPostgres(fleet.stateUrl, `select distinct state from ${changes}`)
  expect(states).not.toContainEqual({ state: 'staged' })
  const [, copy] = /import addons (\S+)/.exec(repaired.stdout) ?? []
  expect(await readFile(copy ?? '', 'utf8')).toBe(addonsCsv(count))
})

test('an import of workers removes nothing in the bucket, so that its credentials need not permit it', async () => {
  const count = 6
  const proxy = await startFaultProxy(fleet.endpoint)
  onTestFinished(() => proxy.close())
  proxy.setFaults(({ method }) => (method === 'DELETE' ? 'denied' : undefined))
  const world = await createWorld({ counts })
  await startMember(world, { BILLING_SETTLE_SECONDS: '0.3', ...environmentOf(proxy.endpoint) })
  const file = join(world.dataDir, 'addons.csv')
  await writeFile(file, addonsCsv(count))
  const env = { ...(await newMachine(world)), ...environmentOf(proxy.endpoint) }
  const imported = await callCommand(world, ['import', 'addons', file, '--json'], { env })
  expect(imported).toMatchObject({ code: 0, stdout: expect.stringContaining('"proven"') })
  expect(timesOf(world, 'addons', count)).toEqual(once(count))
  expect(proxy.counts.get('denied')).toBeUndefined()
})

test('machines with nothing but the two addresses fetch the documents of a file, recover subscriptions and show the reports', async () => {
  const world = await createWorld({ ...well, counts: { ...well.counts, creditnotes: 12 } })
  const ids = world.sandbox.control.ids({ resource: 'creditnotes' })
  const file = join(world.dataDir, 'ids.csv')
  await writeFile(file, ['id', ...ids, ''].join('\n'))
  await startMember(world, { BILLING_SETTLE_SECONDS: '0.3' })
  const call = async (...words: string[]) => callCommand(world, words, { env: await newMachine(world) })
  const fetched = await call('fetch', 'creditnotes', file, '--json')
  const printed = JSON.parse(fetched.stdout) as { run: string; verdict: string; report: string }
  const { run, verdict } = printed
  expect({ code: fetched.code, verdict }).toEqual({ code: 0, verdict: 'proven' })
  const shown = JSON.parse((await call('run', 'report', run, '--json')).stdout) as { report: string }
  expect(shown).toEqual({ ...printed, report: expect.any(String) })
  // Each names the page on its own machine.
  const pages = [printed.report, shown.report]
  expect(await Promise.all(pages.map((page) => readFile(page, 'utf8')))).toHaveLength(2)
  expect(new Set(pages)).toHaveLength(2)
  expect(await call('run', 'report', 'nothing')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('There is no report of a run nothing'),
  })

  const broken = idsOf(world).slice(0, 6)
  breakSome(world, { ids: broken, reason: 'gateway_issue' })
  const waits = ['--input', 'coolDown=0']
  const recovered = await call('recover', '--yes', ...waits, '--json')
  expect(recovered, recovered.stderr).toMatchObject({ code: 0 })
  const recovery = JSON.parse(recovered.stdout) as { run: string }
  expect(recovery).toMatchObject({ verdict: 'proven', counts: { done: broken.length } })
  expect(resumesDone(world).toSorted()).toEqual(broken.toSorted())
  const env = await newMachine(world)
  const reported = await callCommand(world, ['run', 'report', recovery.run, '--json'], { env })
  expect(reported, reported.stderr).toMatchObject({ code: 0 })
  const page = join(env.CONNECTOR_DATA_DIR, 'recoveries', recovery.run, 'report.html')
  expect(await readFile(page, 'utf8')).toContain(recovery.run)
  const missing = await connectTemporal()
  const input = { kind: 'addons', file: '../rows.csv' } as const
  const outside = await startImport({ client: missing, world, input })
  await expect(outside.result()).rejects.toMatchObject({
    cause: { message: expect.stringContaining('lies outside the data folder') },
  })
  const nowhere = await startImport({ client: missing, world, input: { ...input, file: 'inbox/rows.csv' } })
  await expect(nowhere.result()).rejects.toMatchObject({
    cause: { message: expect.stringContaining('There is no file inbox/rows.csv') },
  })
})

test('a state that is moved takes along what a repair and the reports of its runs need', async () => {
  const world = await createWorld({ counts })
  const worker = await startTestWorker(world)
  const sheet = await putFile(world, addonsCsv(3), 'addons.csv')
  const call = async (env: Record<string, string>, ...words: string[]) => {
    const { code, stdout, stderr } = await callCommand(world, [...words, '--json'], { env })
    expect(code, stderr).toBe(0)
    return JSON.parse(stdout) as Record<string, unknown>
  }
  const imported = await call({}, 'import', 'addons', join(world.dataDir, sheet))
  const exported = await call({}, 'export', 'customers')
  await worker.stop()
  const moving = { ...(await newMachine(world)), CONNECTOR_DATA_DIR: world.dataDir }
  const moved = await call(moving, 'state', 'move')
  expect(moved).toMatchObject({ changes: 3, files: expect.any(Number) })
  expect(await call(moving, 'state', 'move')).toEqual({ ...moved, files: 0 })

  const elsewhere = await newMachine(world)
  const { run, verdict, counts: outcome } = imported
  expect(await call(elsewhere, 'run', 'report', String(run))).toMatchObject({ run, verdict, counts: outcome })
  const { run: read, exports } = exported
  expect(await call(elsewhere, 'run', 'report', String(read))).toMatchObject({
    run: read,
    exports,
    report: join(elsewhere.CONNECTOR_DATA_DIR, 'exports', 'reports', `${String(read)}.html`),
  })

  // PostgreSQL is lost as a whole. The bucket admits no state with another id.
  await startMember(world).then((member) => member.stop())
  const schema = `"connector_${world.workspace}"`
  const readId = () => askPostgres(fleet.stateUrl, `select id from ${schema}.store`)
  const id = await readId()
  await askPostgres(fleet.stateUrl, `drop schema ${schema} cascade`)
  expect(await call(elsewhere, 'state', 'repair')).toMatchObject({ runs: [{ run, restaged: 3 }] })
  expect(await readId()).toEqual(id)
  await startMember(world)
  expect(posts(world)).toBe(3)
})
