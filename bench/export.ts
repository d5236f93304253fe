// npm run bench -- [--to csv|duckdb|parquet|postgres] [--customers 100000] [--latency 0] [--concurrency 4]
// [--rate 1000] [--runs 3] [--bare no] [--parallel 4] [--fleet]
//
// Compares the bare loop (got, JSON.parse, zod, csv-stringify, page by page, no Temporal) with the whole
// export (workflow start to published manifest, on a real server) in one run, against one serving process.
// With a latency, the requests per second are compared with as many bare loops of the connector's own client
// as requests may be in flight. `--fleet`: compares with a fleet of one worker, whose state is on PostgreSQL and whose files
// are in a bucket.
import { Client, Connection } from '@temporalio/client'
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { verifyExport, verifyStoredExport } from '../core/destinations/files/verify.ts'
import { destinationNames, type DestinationName } from '../core/destinations/names.ts'
import { findBinary } from '../scripts/dev-server/find-binary.ts'
import { startDevServer } from '../scripts/dev-server/start-dev-server.ts'
import type { exportData } from '../workflows/export-run.ts'
import { startPostgres } from '../test/system/destinations/postgres-server.ts'
import { readPlaces } from '../worker/settings/settings.ts'
import { openFiles } from '../worker/files.ts'
import { connectorArgs, connectorEnv, endProcess, startNode, usageOf } from './children.ts'
import { startBucket } from './metered-bucket.ts'
import { readOptions } from './options.ts'

const values = readOptions(import.meta.filename, {
  customers: { type: 'string', default: '100000' },
  latency: { type: 'string', default: '0' },
  concurrency: { type: 'string', default: '4' },
  rate: { type: 'string', default: '1000' },
  runs: { type: 'string', default: '3' },
  bare: { type: 'string', default: 'yes' },
  to: { type: 'string', default: 'csv' },
  parallel: { type: 'string' },
  fleet: { type: 'boolean', default: false },
})
const toOther = destinationNames.find((name) => name === values.to)
if (toOther === undefined) {
  console.error(`--to is one of ${destinationNames.join(', ')}.`)
  process.exit(2)
}
const parallel = values.parallel === undefined ? {} : { parallel: Number(values.parallel) }

const here = (name: string) => join(import.meta.dirname, name)
const folder = await mkdtemp(join(tmpdir(), 'bench-'))
await using closing = new AsyncDisposableStack()
closing.defer(() => rm(folder, { recursive: true }))

const service = await startNode({
  args: ['--max-old-space-size=8000', here('serve.ts'), values.customers, values.latency],
  until: 'http',
  from: 'stdout',
})
closing.defer(() => endProcess(service.child))

const warehouse = values.to === 'postgres' ? await startPostgres() : undefined
if (warehouse !== undefined) closing.defer(() => warehouse.close())
const fleet = values.fleet ? { postgres: await startPostgres(), bucket: await startBucket() } : undefined
closing.defer(async () => {
  await fleet?.postgres.close()
  await fleet?.bucket.close()
})

interface Measured {
  records: number
  seconds: number
  cpuSeconds: number
  peakMb: number
  requests?: number
  /** Seconds from the first step of the read to the end of the read. */
  reading?: number
  /** Seconds from the end of the read to the end of publishing. */
  publishing?: number
}

const runNode = async (...args: string[]): Promise<unknown> =>
  JSON.parse((await promisify(execFile)(process.execPath, args)).stdout)

async function bareLoop(): Promise<Measured> {
  const out = await mkdtemp(join(folder, 'bare-'))
  const measured = (await runNode(here('bare-loop.ts'), service.line, out)) as Measured
  await rm(out, { recursive: true })
  return measured
}

/** The requests per second of bare loops of the connector's own client, for the pages of the list. */
async function clientLoops(): Promise<number> {
  const pages = Math.ceil(Number(values.customers) / 100)
  const loops = [here('client-loops.ts'), service.line, `${pages}`, values.concurrency, values.rate]
  const { requests, seconds } = (await runNode(...loops)) as { requests: number; seconds: number }
  return requests / seconds
}

/** The settings of a worker whose files and state are not in its data folder. */
const sharedPlaces = async ({ postgres, bucket }: NonNullable<typeof fleet>, name: string) => ({
  CONNECTOR_STATE_URL: await postgres.createDatabase(),
  CONNECTOR_FILES_URL: `s3://exports/${name}`,
  ...bucket.environment,
})

async function wholeExport(to: DestinationName, shared?: typeof fleet): Promise<Measured> {
  const dataDir = await mkdtemp(join(folder, 'export-'))
  const { env } = process
  const binary = () => findBinary({ cliPath: env['TEMPORAL_CLI_PATH'], env, startTask: () => ({ end() {} }) })
  const server = await startDevServer({ dataDir, binary, ui: false })
  const places = shared && (await sharedPlaces(shared, basename(dataDir)))
  const worker = await startNode({
    args: [...(await connectorArgs()), 'worker'],
    env: {
      ...(await connectorEnv()),
      ...places,
      BILLING_BASE_URL: service.line,
      BILLING_TOKEN: 'bench',
      BILLING_WORKSPACE: 'acc_bench',
      BILLING_REQUESTS_PER_SECOND: values.rate,
      BILLING_CONCURRENCY: values.concurrency,
      CONNECTOR_DATA_DIR: dataDir,
      WAREHOUSE_URL: (await warehouse?.createDatabase()) ?? '',
      TEMPORAL_ADDRESS: server.address,
    },
    until: 'listening',
    from: 'stderr',
  })
  const connection = await Connection.connect({ address: server.address })
  try {
    const client = new Client({ connection })
    const before = usageOf(worker.child.pid ?? 0)
    const started = performance.now()
    const report = await client.workflow.execute<typeof exportData>('exportData', {
      workflowId: 'export-bench',
      taskQueue: 'billing-acc_bench',
      args: [{ resources: ['customers'], to: [to], ...parallel }],
    })
    const seconds = (performance.now() - started) / 1000
    const phases = await phaseSeconds(client, 'export-bench/customers')
    const after = usageOf(worker.child.pid ?? 0)
    const result = report.exports[0]
    if (report.verdict !== 'proven' || result === undefined || !('published' in result))
      throw new Error(report.summary)
    const { records, where } = result.published[0]!
    const files = places && openFiles(readPlaces({ env: places, cwd: dataDir }))
    const verify = () =>
      files === undefined ? verifyExport(where) : verifyStoredExport(files, files.pathOf(where) ?? '')
    const { problems, manifest } = to === 'csv' ? await verify() : { problems: [], manifest: undefined }
    if (problems.length > 0) throw new Error(problems.join('\n'))
    const cpuSeconds = after.cpuSeconds - before.cpuSeconds
    return {
      records,
      seconds,
      cpuSeconds,
      peakMb: after.peakMb,
      ...phases,
      ...(manifest !== undefined && { requests: manifest.requests }),
    }
  } finally {
    await connection.close()
    await endProcess(worker.child)
    await server.stop()
    await rm(dataDir, { recursive: true })
  }
}

/** How long a run read and published, in seconds by Temporal's clock: its last activity publishes. */
async function phaseSeconds(client: Client, workflowId: string) {
  const events = (await client.workflow.getHandle(workflowId).fetchHistory()).events ?? []
  const at = (event: (typeof events)[number] | undefined) =>
    Number(event?.eventTime?.seconds) + Number(event?.eventTime?.nanos) / 1e9
  const scheduled = events.filter((event) => event.activityTaskScheduledEventAttributes)
  const ended = events.findLast((event) => event.activityTaskCompletedEventAttributes)
  const publishingAt = at(scheduled.at(-1))
  return { reading: publishingAt - at(scheduled[0]), publishing: at(ended) - publishingAt }
}

const show = (name: string, one: Measured) =>
  console.log(
    [
      name.padEnd(6),
      `${one.records} records`,
      `${one.seconds.toFixed(2)} s`,
      `${Math.round(one.records / one.seconds)} records/s`,
      `${one.cpuSeconds.toFixed(2)} CPU-s`,
      `${Math.round(one.peakMb)} MB`,
      ...(one.publishing === undefined ? [] : [`publishing ${one.publishing.toFixed(2)} s`]),
      ...(one.requests === undefined
        ? []
        : [`${one.requests} requests, ${(one.requests / one.seconds).toFixed(0)}/s`]),
    ].join('  '),
  )

console.log(`${values.customers} customers, latency ${values.latency} ms, concurrency ${values.concurrency}`)
for (let run = 1; run <= Number(values.runs); run += 1) {
  const bare = values.bare === 'yes' ? await bareLoop() : undefined
  if (bare !== undefined) show('bare', bare)
  const csv = await wholeExport('csv')
  show('csv', csv)
  if (bare !== undefined) showRatio('csv to bare', csv, bare)
  if (fleet !== undefined) {
    const one = await wholeExport('csv', fleet)
    show('fleet', one)
    showRatio('fleet to embedded', one, csv)
  }
  if (Number(values.latency) > 0) showRequests(csv, await clientLoops())
  if (toOther === 'csv') continue
  const other = await wholeExport(toOther)
  show(toOther, other)
  showRatio(`${toOther} to csv`, other, csv)
}

function showRatio(name: string, one: Measured, other: Measured): void {
  const speed = one.records / one.seconds / (other.records / other.seconds)
  console.log(`${name}: speed ${speed.toFixed(2)}, CPU ${(one.cpuSeconds / other.cpuSeconds).toFixed(2)}`)
}

function showRequests({ requests = NaN, seconds, reading = NaN }: Measured, loops: number): void {
  const share = (time: number) => (requests / time / loops).toFixed(2)
  console.log(
    `${values.concurrency} loops of the client: ${loops.toFixed(0)} requests/s; csv to them: ${share(seconds)} overall, ${share(reading)} while it reads`,
  )
}
