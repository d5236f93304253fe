// npm run bench -- export [--to csv|duckdb|parquet|postgres] [--customers 100000] [--latency 0] [--concurrency 4]
// [--rate 1000] [--runs 3] [--parallel 4] [--fleet] [--loop] [--workers 1,2,4]
//
// Measures the whole export, from the start of the workflow to the published manifest, on a real server, and compares another
// destination with csv in one run. Every export to csv is verified. `--fleet`: compares with a fleet of one worker, whose
// state is on PostgreSQL and whose files are in a bucket.
// `--loop`: compares with the bare loop, a whole process, with as many requests in flight.
// `--workers`: measures fleets of so many workers instead, with that many requests in flight for each.
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { isPublished } from '../core/exports/report.ts'
import { verifyExport, verifyStoredExport } from '../core/destinations/files/verify.ts'
import { destinationNames, type DestinationName } from '../core/destinations/names.ts'
import { startPostgres } from '../test/system/destinations/postgres-server.ts'
import { openFiles } from '../worker/files.ts'
import { readPlaces } from '../worker/settings/settings.ts'
import type { exportData } from '../workflows/export-run.ts'
import { readOptions, show, startFleet, startService, startWorkers } from './world.ts'

const values = readOptions(import.meta.filename, {
  customers: { type: 'string', default: '100000' },
  latency: { type: 'string', default: '0' },
  concurrency: { type: 'string', default: '4' },
  rate: { type: 'string', default: '1000' },
  runs: { type: 'string', default: '3' },
  to: { type: 'string', default: 'csv' },
  parallel: { type: 'string' },
  fleet: { type: 'boolean', default: false },
  loop: { type: 'boolean', default: false },
  workers: { type: 'string' },
})
const destination = destinationNames.find((name) => name === values.to)
if (destination === undefined) {
  console.error(`--to is one of ${destinationNames.join(', ')}.`)
  process.exit(2)
}
const folder = await mkdtemp(join(tmpdir(), 'bench-'))
await using closing = new AsyncDisposableStack()
closing.defer(() => rm(folder, { recursive: true }))
const service = await startService(closing, {
  folder,
  counts: { customers: Number(values.customers) },
  latency: Number(values.latency),
  audit: 'none',
})
const warehouse = destination === 'postgres' ? await startPostgres() : undefined
closing.defer(() => warehouse?.close())
const placesOf = values.fleet || values.workers !== undefined ? await startFleet(closing) : undefined

interface Measured {
  records: number
  seconds: number
  cpuSeconds: number
  peakMb: number | number[]
  /** Known of an export to csv. */
  requests?: number
  /** Seconds from the end of the read to the end of publishing. */
  publishing?: number
  /** Of the longest history. */
  events?: number
}

async function wholeExport(to: DestinationName, fleetOf = 0): Promise<Measured> {
  await using ending = new AsyncDisposableStack()
  const dataDir = await mkdtemp(join(folder, 'export-'))
  ending.defer(() => rm(dataDir, { recursive: true }))
  const places = fleetOf > 0 ? await placesOf?.(`${fleetOf}-${Date.now()}`) : undefined
  const { client, cpuSeconds, peakMb } = await startWorkers(ending, {
    dataDir,
    service,
    rate: values.rate,
    concurrency: values.concurrency,
    workers: Math.max(1, fleetOf),
    env: { ...places, WAREHOUSE_URL: (await warehouse?.createDatabase()) ?? '' },
  })
  const cpuBefore = cpuSeconds()
  const started = performance.now()
  const report = await client.workflow.execute<typeof exportData>('exportData', {
    workflowId: 'export-bench',
    taskQueue: 'billing-acc_bench',
    args: [
      { resources: ['customers'], to: [to], ...(values.parallel && { parallel: Number(values.parallel) }) },
    ],
  })
  const seconds = (performance.now() - started) / 1000
  const cost = { seconds, cpuSeconds: cpuSeconds() - cpuBefore, peakMb: peakMb() }
  const [published] = report.exports
  if (report.verdict !== 'proven' || published === undefined || !isPublished(published))
    throw new Error(report.summary)
  const { records, where } = published
  const handle = client.workflow.getHandle('export-bench')
  const events = (await handle.fetchHistory()).events ?? []
  const at = (event: (typeof events)[number] | undefined) =>
    Number(event?.eventTime?.seconds) + Number(event?.eventTime?.nanos) / 1e9
  const begun = events.find(
    ({ activityTaskScheduledEventAttributes: scheduled }) =>
      scheduled?.activityType?.name === 'publishExport',
  )
  const ended = events.find(
    ({ activityTaskCompletedEventAttributes: completed }) =>
      completed && String(completed.scheduledEventId) === String(begun?.eventId),
  )
  const measured = { records, ...cost, publishing: at(ended) - at(begun), events: events.length }
  if (to !== 'csv') return measured
  const files =
    places && openFiles(readPlaces({ env: { ...places, BILLING_WORKSPACE: 'acc_bench' }, cwd: dataDir }))
  const { problems, manifest } = await (files === undefined
    ? verifyExport(where)
    : verifyStoredExport(files, files.pathOf(where) ?? ''))
  if (problems.length > 0) throw new Error(problems.join('\n'))
  return { ...measured, ...(manifest && { requests: manifest.requests }) }
}

function showMeasured(name: string, one: Measured): void {
  const { records, seconds, requests, publishing, events } = one
  show(name, {
    records,
    s: seconds,
    'records/s': Math.round(records / seconds),
    'CPU-s': one.cpuSeconds,
    MB: [one.peakMb].flat().map(Math.round).join(', '),
    ...(publishing !== undefined && { 's publishing': publishing }),
    ...(events !== undefined && { events }),
    ...(requests !== undefined && { 'requests a page': ((100 * requests) / records).toFixed(3) }),
  })
}

function showRatio(name: string, one: Measured, other: Measured): void {
  const times = one.records / one.seconds / (other.records / other.seconds)
  show(name, { 'times the speed': times, 'times the CPU': one.cpuSeconds / other.cpuSeconds })
}

console.log(`${values.customers} customers, latency ${values.latency} ms, concurrency ${values.concurrency}`)
if (values.workers === undefined)
  for (let run = 1; run <= Number(values.runs); run++) await compare(destination)
else {
  let first: Measured | undefined
  for (const workers of values.workers.split(',').map(Number)) {
    const one = await wholeExport(destination, workers)
    showMeasured(`${workers} workers`, one)
    if (first !== undefined) showRatio(`${workers} workers to the first`, one, first)
    first ??= one
  }
}

async function compare(to: DestinationName): Promise<void> {
  const csv = await wholeExport('csv')
  showMeasured('csv', csv)
  if (values.fleet) {
    const fleet = await wholeExport('csv', 1)
    showMeasured('fleet', fleet)
    showRatio('fleet to embedded', fleet, csv)
  }
  if (values.loop) {
    const out = await mkdtemp(join(folder, 'loop-'))
    const started = performance.now()
    await promisify(execFile)(process.execPath, [
      join(import.meta.dirname, 'bare-loop.ts'),
      service,
      out,
      values.concurrency,
    ])
    const seconds = (performance.now() - started) / 1000
    show('bare loop', { s: seconds, 'records/s': Math.round(csv.records / seconds) })
    show('csv to the bare loop', { 'times the speed': seconds / csv.seconds })
  }
  if (to === 'csv') return
  const other = await wholeExport(to)
  showMeasured(to, other)
  showRatio(`${to} to csv`, other, csv)
}
