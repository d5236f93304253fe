// npm run bench:workers -- [--workers 1,2,4] [--customers 200000] [--latency 200] [--concurrency 4] [--parallel 16] [--rate 1000]
// [--bucket]
//
// Exports one list to csv by several worker processes that share a data folder and a state on PostgreSQL, with that
// many requests in flight for each worker. Every export is verified. Prints the peak memory of each worker, and the
// length of the longest history of a workflow execution. `--bucket`: the files are in a bucket, and each worker has a
// folder of its own.
import { Client, Connection } from '@temporalio/client'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { verifyExport, verifyStoredExport } from '../core/destinations/files/verify.ts'
import { findBinary } from '../scripts/dev-server/find-binary.ts'
import { startDevServer } from '../scripts/dev-server/start-dev-server.ts'
import { startPostgres } from '../test/system/destinations/postgres-server.ts'
import type { exportData } from '../workflows/export-run.ts'
import { openFiles } from '../worker/files.ts'
import { readPlaces } from '../worker/settings/settings.ts'
import {
  connectorArgs,
  connectorEnv,
  connectorFlags,
  endProcess,
  machineCpu,
  startNode,
  usageOf,
} from './children.ts'
import { startBucket } from './metered-bucket.ts'
import { readOptions } from './options.ts'

const values = readOptions(import.meta.filename, {
  workers: { type: 'string', default: '1,2,4' },
  customers: { type: 'string', default: '200000' },
  latency: { type: 'string', default: '200' },
  concurrency: { type: 'string', default: '4' },
  parallel: { type: 'string', default: '16' },
  rate: { type: 'string', default: '1000' },
  bucket: { type: 'boolean', default: false },
})
const flags = await connectorFlags()
const { env } = process
const here = (name: string) => join(import.meta.dirname, name)
await using closing = new AsyncDisposableStack()
const folder = await mkdtemp(join(tmpdir(), 'bench-'))
closing.defer(() => rm(folder, { recursive: true }))
const service = await startNode({
  args: ['--max-old-space-size=8000', here('serve.ts'), values.customers, values.latency],
  until: 'http',
  from: 'stdout',
})
closing.defer(() => endProcess(service.child))
const postgres = await startPostgres()
closing.defer(() => postgres.close())
const bucket = values.bucket ? await startBucket() : undefined
closing.defer(() => bucket?.close())

async function measure(workers: number) {
  await using held = new AsyncDisposableStack()
  const dataDir = await mkdtemp(join(folder, 'export-'))
  const binary = () => findBinary({ cliPath: env['TEMPORAL_CLI_PATH'], env, startTask: () => ({ end() {} }) })
  const server = await startDevServer({ dataDir, binary, ui: false })
  held.defer(() => server.stop())
  const places = {
    CONNECTOR_STATE_URL: await postgres.createDatabase(),
    ...(bucket && { CONNECTOR_FILES_URL: `s3://exports/${workers}`, ...bucket.environment }),
  }
  const settings = {
    ...(await connectorEnv()),
    ...places,
    BILLING_BASE_URL: service.line,
    BILLING_TOKEN: 'bench',
    BILLING_WORKSPACE: 'acc_bench',
    BILLING_REQUESTS_PER_SECOND: values.rate,
    BILLING_CONCURRENCY: String(Number(values.concurrency) * workers),
    CONNECTOR_DATA_DIR: dataDir,
    TEMPORAL_ADDRESS: server.address,
  }
  const pids: number[] = []
  for (let worker = 0; worker < workers; worker += 1) {
    const sharing = [...flags, here('../test/system/state/probes/sharing-worker.ts')]
    const own = { CONNECTOR_DATA_DIR: join(dataDir, `worker-${worker}`) }
    const { child } = await startNode({
      args: bucket === undefined ? sharing : [...(await connectorArgs()), 'worker'],
      env: { ...settings, ...(bucket && own) },
      until: 'listening',
      from: 'stderr',
    })
    held.defer(() => endProcess(child))
    pids.push(child.pid ?? 0)
  }
  const connection = await Connection.connect({ address: server.address })
  held.defer(() => connection.close())
  const client = new Client({ connection })
  const cpuOf = (all: readonly number[]) => all.reduce((sum, pid) => sum + usageOf(pid).cpuSeconds, 0)
  const before = { workers: cpuOf(pids), machine: machineCpu() }
  const started = performance.now()
  const report = await client.workflow.execute<typeof exportData>('exportData', {
    workflowId: 'export-bench',
    taskQueue: 'billing-acc_bench',
    args: [{ resources: ['customers'], to: ['csv'], parallel: Number(values.parallel) }],
  })
  const seconds = (performance.now() - started) / 1000
  const machine = machineCpu()
  const cpuSeconds = cpuOf(pids) - before.workers
  const peakMb = pids.map((pid) => usageOf(pid).peakMb)
  const busy = (machine.used - before.machine.used) / (machine.all - before.machine.all)
  const result = report.exports[0]
  if (report.verdict !== 'proven' || result === undefined || !('published' in result))
    throw new Error(report.summary)
  const { where, records } = result.published[0]!
  const files = bucket && openFiles(readPlaces({ env: places, cwd: dataDir }))
  const verified =
    files === undefined ? verifyExport(where) : verifyStoredExport(files, files.pathOf(where) ?? '')
  const { problems, manifest } = await verified
  if (problems.length > 0) throw new Error(problems.join('\n'))
  let events = 0
  for (const id of ['export-bench', 'export-bench/customers'])
    events = Math.max(events, (await client.workflow.getHandle(id).describe()).historyLength)
  return {
    seconds,
    records,
    requests: manifest?.requests ?? NaN,
    peakMb,
    events,
    cpuSeconds,
    busy,
  }
}

console.log(
  `${values.customers} customers, ${values.latency} ms, ${values.concurrency} in flight a worker, parallel ${values.parallel}`,
)
let alone: number | undefined
for (const workers of values.workers.split(',').map(Number)) {
  const { seconds, records, requests, peakMb, events, cpuSeconds, busy } = await measure(workers)
  const rate = records / seconds
  alone ??= rate
  console.log(
    [
      `${workers} workers`,
      `${seconds.toFixed(1)} s`,
      `${rate.toFixed(0)} records/s`,
      `${(rate / alone).toFixed(2)} times`,
      `${((requests / records) * 100).toFixed(3)} requests a page`,
      `${peakMb.map(Math.round).join(', ')} MB at most`,
      `${events} events in the longest history`,
      `${cpuSeconds.toFixed(0)} CPU-s of the workers`,
      `the machine ${Math.round(busy * 100)} % busy`,
    ].join('  '),
  )
}
