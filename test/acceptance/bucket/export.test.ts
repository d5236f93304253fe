import { readFile, readdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { ExportInput } from '../../../core/exports/input.ts'
import { cached } from '../../../core/storage/cached.ts'
import { openToRead } from '../../../scripts/runs/run-files.ts'
import { openFiles } from '../../../worker/files.ts'
import { findOldExports, removeOldExport } from '../../../core/exports/prune.ts'
import { type ExportReport, isPublished } from '../../../core/exports/report.ts'
import type { FileStore } from '../../../core/storage/file-store.ts'
import { readPlaces } from '../../../worker/settings/settings.ts'
import type { RunningWorker } from '../../../worker/start-worker.ts'
import { callCommand } from '../../system/command-line/call-command.ts'
import { hasPython, judgeStoredByPython } from '../../system/export/python-checker.ts'
import {
  connectTemporal,
  openTestWorker,
  openWorld,
  startRun,
  startTestWorker,
  type World,
} from '../../system/export/world.ts'
import { startFaultProxy } from './fault-proxy.ts'
import { environmentOf, keys, startGateway } from './gateway.ts'

let gateway: Awaited<ReturnType<typeof startGateway>>
let proxy: Awaited<ReturnType<typeof startFaultProxy>>
let world: World
let worker: RunningWorker
let env: Record<string, string>
let store: FileStore

const url = 's3://exports/billing/acc'

beforeAll(async () => {
  gateway = await startGateway()
  proxy = await startFaultProxy(gateway.endpoint)
  world = await openWorld({ counts: { customers: 120, subscriptions: 250, plans: 5, retentions: 30 } })
  env = { ...environmentOf(proxy.endpoint), CONNECTOR_FILES_URL: url }
  worker = await openTestWorker(world, env)
  store = openFiles(readPlaces({ env: { ...world.env, ...env }, cwd: world.dataDir }))!
})
afterAll(async () => {
  await worker.stop()
  await world.close()
  await proxy.close()
  await gateway.close()
})

async function run(input: ExportInput): Promise<ExportReport> {
  const started = await startRun({ client: await connectTemporal(), world, input })
  return await started.result()
}
const publishedOf = (report: ExportReport, resource: string) =>
  report.exports.filter((one) => one.resource === resource).filter(isPublished)
const whereOf = (report: ExportReport) => publishedOf(report, 'plans')[0]!.where
const call = (...words: string[]) => callCommand(world, words, { env })
const read = async <T>(path: string) => JSON.parse((await store.read(path))!.text) as T

test('an export is published to the bucket, with its pointers and its report, and verify finds it whole', async () => {
  const report = await run({ resources: ['customers', 'subscriptions'], to: ['csv', 'parquet', 'duckdb'] })
  expect(report).toMatchObject({ verdict: 'proven', files: url })
  const [csv, parquet, duckdb] = publishedOf(report, 'subscriptions')
  expect(csv).toMatchObject({
    where: expect.stringMatching(`^${url}/exports/subscriptions/[-\\dTZ]+-${report.run}$`),
    verdict: 'proven',
    records: 250,
  })
  expect(parquet!.where).toBe(
    csv!.where.replace('/exports/subscriptions/', '/exports/parquet/subscriptions/'),
  )
  for (const where of [
    csv!.where,
    `${url}/exports/subscriptions/latest-proven`,
    `${url}/exports/subscriptions/latest.json`,
    `${url}/exports/parquet/customers/latest`,
    parquet!.manifest!,
    duckdb!.manifest!,
  ]) {
    const verified = await call('verify', where)
    expect(verified).toMatchObject({ code: 0, stdout: expect.stringContaining('proven') })
  }
  // What lies there can be copied and checked by anybody.
  if (hasPython)
    expect(await judgeStoredByPython(store, csv!.where)).toMatch(
      /^ACCEPT 250 records of subscriptions, complete through /,
    )
  expect(await read(`exports/reports/${report.run}.json`)).toMatchObject({
    verdict: 'proven',
    run: report.run,
  })
  const page = await text((await store.open(`exports/reports/${report.run}.html`))!)
  const links = [...page.matchAll(/href="([^"]+manifest\.json)"/g)].map(([, link]) => link!)
  expect(links).toHaveLength(6)
  for (const link of links)
    expect(await read(join('exports/reports', link))).toMatchObject({ run: report.run, verdict: 'proven' })
  // The data folder has the log and the report, and no exported row.
  const left = await readdir(join(world.dataDir, 'exports'), { recursive: true, withFileTypes: true })
  const files = left.filter((entry) => entry.isFile()).map(({ name }) => name)
  expect(files.filter((name) => !/\.(json|html|jsonl)$/.test(name))).toEqual([])
})

test('commands find the exports in the bucket: check, report and prune', async () => {
  const report = await run({ resources: ['plans'] })
  const later = await run({ resources: ['plans'] })
  const checked = await call('check', '--json')
  const { findings } = JSON.parse(checked.stdout) as { findings: unknown[] }
  expect(findings).toContainEqual({
    check: 'bucket',
    status: 'ok',
    message: `${url} is writable and honours If-None-Match and If-Match.`,
  })
  expect((await call('run', 'report', report.run)).stdout).toContain(whereOf(report))
  // The last three runs keep their parts, and with them what is published.
  await rm(join(world.dataDir, 'parts', report.run), { recursive: true })
  await using state = await openToRead({ folder: world.dataDir })
  const { dataDir } = world
  const where = { state, shared: cached(dataDir), dataDir, files: store }
  const old = await findOldExports({ ...where, before: Date.now() + 1000 })
  expect(old.map(({ folder }) => folder)).toEqual([whereOf(report)])
  for (const one of old) await removeOldExport({ ...where, old: one })
  expect(await store.list(store.pathOf(whereOf(report))!)).toEqual([])
  expect(await call('verify', whereOf(later))).toMatchObject({ code: 0 })
})

test('an export that is changed in the bucket is no longer proven, and verify says what is wrong', async () => {
  const report = await run({ resources: ['retentions'] })
  const [{ where } = { where: '' }] = publishedOf(report, 'retentions')
  const [file] = (await store.list(store.pathOf(where)!)).filter(({ path }) =>
    /retentions-.*\.csv$/.test(path),
  )
  const original = await text((await store.open(file!.path))!)
  const tag = (await store.read(file!.path))!.tag
  await store.replace(file!.path, original.replace(/\d/, '9'), tag)
  const verified = await call('verify', where)
  expect(verified).toMatchObject({ code: 1, stdout: expect.stringContaining('is not as it was published') })
  const manifest = store.pathOf(`${where}/manifest.json`)!
  await store.remove(manifest)
})

test('a bucket that is away does not count as exports that are gone, and a run waits for it', async () => {
  proxy.setFaults(() => 'away')
  onTestFinished(() => proxy.setFaults(() => undefined))
  const client = await connectTemporal()
  const started = await startRun({ client, world, input: { resources: ['plans'] } })
  const before = proxy.counts.get('away') ?? 0
  while ((proxy.counts.get('away') ?? 0) < before + 6) await new Promise((resolve) => setTimeout(resolve, 50))
  proxy.setFaults(() => undefined)
  const report = await started.result()
  expect(report.verdict).toBe('proven')
  expect(await call('verify', publishedOf(report, 'plans')[0]!.where)).toMatchObject({ code: 0 })
})

test('a run is published where it began, whatever the settings of a later worker', async () => {
  const own = await openWorld({ counts: { plans: 5 } })
  onTestFinished(() => own.close())
  const elsewhere = `${url}-2`
  const first = await openTestWorker(own, { ...env, CONNECTOR_FILES_URL: elsewhere })
  const client = await connectTemporal()
  const started = await startRun({ client, world: own, input: { resources: ['plans'] } })
  const report = await started.result()
  await first.stop()
  await startTestWorker(own)
  const again = await callCommand(own, ['run', 'publish', report.run, '--to', 'parquet'])
  expect(again.code).toBe(1)
  expect(again.stderr + again.stdout).toContain(
    `The run ${report.run} publishes to ${elsewhere}, and CONNECTOR_FILES_URL of this worker is not set.`,
  )
})

test('an export with --out is written to that folder', async () => {
  const report = await run({ resources: ['plans'], out: 'here' })
  expect(report).not.toHaveProperty('files')
  const { where } = publishedOf(report, 'plans')[0]!
  expect(dirname(where)).toBe(join(world.dataDir, 'here/plans'))
  expect(where.endsWith(`Z-${report.run}`)).toBe(true)
  expect(await store.read(`exports/reports/${report.run}.json`)).toBeUndefined()
})

test('no credential is in the data folder, in a report or in Temporal', async () => {
  const client = await connectTemporal()
  const started = await startRun({ client, world, input: { resources: ['plans'] } })
  await started.result()
  const history = JSON.stringify(await started.fetchHistory())
  expect(history).not.toContain(keys.secretAccessKey)
  for (const entry of await readdir(world.dataDir, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    expect((await readFile(join(entry.parentPath, entry.name))).includes(keys.secretAccessKey)).toBe(false)
  }
  for (const { path } of await store.list(''))
    expect((await store.read(path))!.text).not.toContain(keys.secretAccessKey)
})
