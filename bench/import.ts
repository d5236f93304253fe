// npm run bench:import -- [--rows 2000] [--latency 50] [--rate 50] [--concurrency 4] [--stage] [--state folder]
//
// Imports retentions, from workflow start to report, on a real Temporal server, against the stand-in service
// in a separate process, which reports what it received and when. `--stage`: checks and stages, sends
// nothing. `--state`: where the state is, `folder` or `postgres`; with several, as `folder,postgres,folder,postgres`, it
// measures one after the other and prints the ratio. `bucket`: on PostgreSQL, with the files in a bucket, as one of several
// workers has them; it prints what each step took, fetched and kept.
import { Client, Connection, type WorkflowHandle } from '@temporalio/client'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RequestEntry } from '../sandbox/audit.ts'
import type { Counters } from '../sandbox/control.ts'
import { findBinary } from '../scripts/dev-server/find-binary.ts'
import { startDevServer } from '../scripts/dev-server/start-dev-server.ts'
import { openFiles } from '../worker/files.ts'
import { readPlaces } from '../worker/settings/settings.ts'
import { startPostgres } from '../test/system/destinations/postgres-server.ts'
import type { importFile } from '../workflows/import-file.ts'
import { connectorArgs, connectorEnv, endProcess, startNode, usageOf } from './children.ts'
import { startMeteredBucket } from './metered-bucket.ts'
import { readOptions } from './options.ts'

const values = readOptions(import.meta.filename, {
  rows: { type: 'string', default: '2000' },
  latency: { type: 'string', default: '50' },
  rate: { type: 'string', default: '50' },
  concurrency: { type: 'string', default: '4' },
  stage: { type: 'boolean', default: false },
  state: { type: 'string', default: 'folder' },
})
const rows = Number(values.rows)
const connector = join(import.meta.dirname, '../scripts/connector.ts')
/** Writes per second, or staged rows per second with `--stage`. */
async function measure(state: string): Promise<number> {
  const dataDir = await mkdtemp(join(tmpdir(), 'bench-import-'))
  await using closing = new AsyncDisposableStack()
  closing.defer(() => rm(dataDir, { recursive: true }))

  const latency = Number(values.latency)
  const options = {
    counts: { customers: 1, subscriptions: 0, plans: 0, retentions: 0 },
    token: 'bench',
    workspace: 'acc_bench',
    faults: latency > 0 ? [{ kind: 'latency', ms: latency }] : [],
  }
  await writeFile(join(dataDir, 'sandbox.json'), JSON.stringify(options))
  const service = await startNode({
    args: [connector, 'sandbox', '--options', join(dataDir, 'sandbox.json')],
    until: 'http',
    from: 'stdout',
  })
  closing.defer(() => endProcess(service.child))
  const address = service.line.replace(/^.*(?=http)/, '')

  /** Calls a control method and parses the JSON lines it returns. */
  async function ask<T>(method: string): Promise<T[]> {
    const asked = await fetch(`${address}/_sandbox/${method}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
    const lines = (await asked.text()).split('\n').filter((line) => line !== '')
    return lines.map((line) => JSON.parse(line) as T)
  }

  const { env } = process
  const binary = () => findBinary({ cliPath: env['TEMPORAL_CLI_PATH'], env, startTask: () => ({ end() {} }) })
  const server = await startDevServer({ dataDir, binary, ui: false })
  closing.defer(() => server.stop())
  const bucket = state === 'bucket' ? await startMeteredBucket() : undefined
  closing.defer(() => bucket?.close())
  const files = { CONNECTOR_FILES_URL: 's3://exports/bench', ...bucket?.environment }
  const worker = await startNode({
    args: [...(await connectorArgs()), 'worker'],
    env: {
      ...(await connectorEnv()),
      BILLING_BASE_URL: address,
      BILLING_TOKEN: 'bench',
      BILLING_WORKSPACE: 'acc_bench',
      BILLING_REQUESTS_PER_SECOND: values.rate,
      BILLING_CONCURRENCY: values.concurrency,
      CONNECTOR_DATA_DIR: dataDir,
      ...(await stateVariables(state, closing)),
      ...(bucket && files),
      TEMPORAL_ADDRESS: server.address,
    },
    until: 'listening',
    from: 'stderr',
  })
  closing.defer(() => endProcess(worker.child))

  await mkdir(join(dataDir, 'inbox'), { recursive: true })
  const header = 'supplier,document,number,date,total,lines.1.name,lines.1.amount,lines.1.quantity'
  const lines = Array.from(
    { length: rows },
    (_, index) =>
      `sup_${index % 300},${7 + (index % 3)},${index + 1},2026-03-01,${index + 1}.50,Honorarios,${index + 1}.50,1`,
  )
  await writeFile(join(dataDir, 'inbox/rows.csv'), [header, ...lines, ''].join('\n'))
  if (bucket !== undefined) {
    const store = openFiles(readPlaces({ env: { ...files, CONNECTOR_DATA_DIR: dataDir }, cwd: dataDir }))
    await store?.put('inbox/rows.csv', join(dataDir, 'inbox/rows.csv'))
  }

  const connection = await Connection.connect({ address: server.address })
  closing.defer(() => connection.close())
  const client = new Client({ connection })
  const startedAt = Date.now()
  const handle = await client.workflow.start<typeof importFile>('importFile', {
    workflowId: 'import-bench',
    taskQueue: 'billing-acc_bench',
    args: [
      {
        kind: 'retentions',
        file: 'inbox/rows.csv',
        canary: 0,
        ...(values.stage && { maxChanges: 0 }),
      },
    ],
  })
  const result = await handle.result()
  const seconds = (Date.now() - startedAt) / 1000
  const steps = await stepsOf(handle)
  const stagedAt = steps.find(({ name }) => name === 'stageImport')?.ended ?? Number.NaN
  const { events = [] } = await handle.fetchHistory()
  const { cpuSeconds, peakMb } = usageOf(worker.child.pid ?? 0)

  console.log(
    `state in ${state}: ${rows} rows, latency ${latency} ms, rate ${values.rate}/s, concurrency ${values.concurrency}`,
  )
  console.log(result.summary)
  console.log(`staged after ${((stagedAt - startedAt) / 1000).toFixed(2)} s, all in ${seconds.toFixed(2)} s`)
  console.log(
    `${events?.length} events in the history, ${cpuSeconds.toFixed(1)} CPU-s and ${peakMb.toFixed(0)} MB of the worker`,
  )
  for (const { name, started, ended } of bucket === undefined ? [] : steps) {
    const { fetched, kept } = bucket!.between(started, ended)
    const took = ((ended - started) / 1_000).toFixed(1)
    console.log(`${name}: ${took} s, ${fetched.toFixed(1)} MB fetched, ${kept.toFixed(1)} MB kept`)
  }
  if (values.stage) return rows / seconds
  const posts = (await ask<RequestEntry>('requests')).filter(({ method }) => method === 'POST')
  const [first, last] = [posts.at(0)?.receivedAt ?? 0, posts.at(-1)?.receivedAt ?? 0]
  const perSecond = (1000 * (posts.length - 1)) / (last - first)
  const busiest = (await ask<Counters>('counters')).map(({ busiestSecond }) => busiestSecond)
  console.log(
    `${posts.length} writes, ${perSecond.toFixed(1)}/s, ${(perSecond / Number(values.rate)).toFixed(3)} of the rate, ${busiest.join()} in the busiest second`,
  )
  return perSecond
}

/** The steps of a run, with the times of their last attempts, in ms since 1970. */
async function stepsOf(handle: WorkflowHandle) {
  const { events } = await handle.fetchHistory()
  const at = (time: { seconds?: unknown; nanos?: number | null } | null | undefined) =>
    Number(time?.seconds ?? 0) * 1_000 + (time?.nanos ?? 0) / 1e6
  const of = (id: unknown) => events?.find(({ eventId }) => String(eventId) === String(id))
  return (events ?? []).flatMap(({ activityTaskCompletedEventAttributes: done, eventTime }) => {
    if (!done) return []
    const scheduled = of(done.scheduledEventId)?.activityTaskScheduledEventAttributes
    const started = at(of(done.startedEventId)?.eventTime)
    return [{ name: scheduled?.activityType?.name ?? '', started, ended: at(eventTime) }]
  })
}

async function stateVariables(state: string, closing: AsyncDisposableStack): Promise<Record<string, string>> {
  if (state === 'folder') return {}
  const postgres = await startPostgres()
  closing.defer(() => postgres.close())
  return { CONNECTOR_STATE_URL: await postgres.createDatabase() }
}

const speeds = new Map<string, number[]>()
for (const state of values.state.split(',')) {
  const measured = speeds.get(state) ?? []
  measured.push(await measure(state))
  speeds.set(state, measured)
}
const median = (numbers: readonly number[]) =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN
const [folder, postgres] = [speeds.get('folder'), speeds.get('postgres')]
if (folder && postgres)
  console.log(`postgres to folder: ${(median(postgres) / median(folder)).toFixed(3)} of the median`)
