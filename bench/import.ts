// npm run bench -- import [--rows 2000] [--latency 50] [--rate 50] [--concurrency 4] [--stage] [--fleet]
//
// Imports retentions, from workflow start to report, on a real Temporal server, against the stand-in service in a separate
// process, which reports what it received and when. `--stage`: checks and stages, sends nothing. `--fleet`: with the state on
// PostgreSQL and files in a bucket.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RequestEntry } from '../sandbox/audit.ts'
import type { Counters } from '../sandbox/control.ts'
import { openFiles } from '../worker/files.ts'
import { readPlaces } from '../worker/settings/settings.ts'
import type { importFile } from '../workflows/import-file.ts'
import { askControl, readOptions, show, startFleet, startService, startWorkers } from './world.ts'

const values = readOptions(import.meta.filename, {
  rows: { type: 'string', default: '2000' },
  latency: { type: 'string', default: '50' },
  rate: { type: 'string', default: '50' },
  concurrency: { type: 'string', default: '4' },
  stage: { type: 'boolean', default: false },
  fleet: { type: 'boolean', default: false },
})
const rows = Number(values.rows)
const latency = Number(values.latency)
const dataDir = await mkdtemp(join(tmpdir(), 'bench-import-'))
await using closing = new AsyncDisposableStack()
closing.defer(() => rm(dataDir, { recursive: true }))
const service = await startService(closing, { folder: dataDir, counts: { customers: 1 }, latency })
const env = values.fleet ? await (await startFleet(closing))('import') : undefined
const { rate, concurrency } = values
const worker = await startWorkers(closing, { dataDir, service, rate, concurrency, ...(env && { env }) })

const path = join(dataDir, 'inbox/rows.csv')
await mkdir(join(dataDir, 'inbox'), { recursive: true })
const header = 'supplier,document,number,date,total,lines.1.name,lines.1.amount,lines.1.quantity'
const lines = Array.from(
  { length: rows },
  (_, index) =>
    `sup_${index % 300},${7 + (index % 3)},${index + 1},2026-03-01,${index + 1}.50,Honorarios,${index + 1}.50,1`,
)
await writeFile(path, [header, ...lines, ''].join('\n'))
if (env !== undefined) {
  const files = openFiles(readPlaces({ env: { ...env, BILLING_WORKSPACE: 'acc_bench' }, cwd: dataDir }))
  await files?.put('inbox/rows.csv', path)
}

const startedAt = performance.now()
const handle = await worker.client.workflow.start<typeof importFile>('importFile', {
  workflowId: 'import-bench',
  taskQueue: 'billing-acc_bench',
  args: [{ kind: 'retentions', file: 'inbox/rows.csv', canary: 0, ...(values.stage && { maxChanges: 0 }) }],
})
const { summary } = await handle.result()
const seconds = (performance.now() - startedAt) / 1000
const { historyLength } = await handle.describe()
console.log(summary)
const cost = { s: seconds, events: historyLength, 'CPU-s': worker.cpuSeconds(), MB: worker.peakMb().join() }
if (values.stage) show('staged', { rows, 'rows/s': rows / seconds, ...cost })
else {
  const requests = (await askControl(service, 'requests')) as RequestEntry[]
  const [counters] = (await askControl(service, 'counters')) as [Counters]
  const posts = requests.filter(({ method }) => method === 'POST')
  const perSecond = (1000 * (posts.length - 1)) / (posts.at(-1)!.receivedAt - posts[0]!.receivedAt)
  show('sent', {
    rows,
    'writes/s': perSecond,
    'of the rate': (perSecond / Number(rate)).toFixed(3),
    'in the busiest second': counters.busiestSecond,
    ...cost,
  })
}
