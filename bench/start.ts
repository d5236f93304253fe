// npm run bench -- start [--runs 7] [--customers 5000]
//
// How long people wait: `export --local` from typing to its first request for a page and to its end, each time in a new
// data folder, and commands that connect to a running `up`. Every time is the median of whole processes, and every command
// runs once before it counts.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { ExportDocument } from '../core/exports/report.ts'
import { createSandbox } from '../sandbox/sandbox.ts'
import { connector, endedCpuSeconds, endProcess, median, readOptions, show, startProcess } from './world.ts'

const values = readOptions(import.meta.filename, {
  runs: { type: 'string', default: '7' },
  customers: { type: 'string', default: '5000' },
})
await using closing = new AsyncDisposableStack()
const folder = await mkdtemp(join(tmpdir(), 'bench-start-'))
closing.defer(() => rm(folder, { recursive: true }))
const sandbox = await createSandbox({
  counts: { customers: Number(values.customers), subscriptions: 20, plans: 20, retentions: 20 },
  workspace: 'acc_bench',
  warm: true,
})
closing.defer(() => sandbox.close())

const environment = (dataDir: string) => ({
  BILLING_BASE_URL: sandbox.url,
  BILLING_TOKEN: sandbox.token,
  BILLING_WORKSPACE: 'acc_bench',
  BILLING_REQUESTS_PER_SECOND: '1000',
  CONNECTOR_DATA_DIR: dataDir,
})

async function run(dataDir: string, words: readonly string[]): Promise<string> {
  const env = { ...process.env, ...environment(dataDir) }
  return (await promisify(execFile)(connector, words, { env })).stdout
}

/** Measures once for warming up and then as often as asked, and returns the medians. */
async function measure<T extends string>(
  once: (number: number) => Promise<Record<T, number>>,
): Promise<Record<T, number>> {
  const all: Record<T, number>[] = []
  for (let number = 0; number <= Number(values.runs); number += 1) all.push(await once(number))
  const [warmUp, ...measured] = all
  const names = Object.keys(warmUp!) as T[]
  return Object.fromEntries(names.map((name) => [name, median(measured.map((one) => one[name]))])) as Record<
    T,
    number
  >
}

const load = readFileSync('/proc/loadavg', 'utf8').split(' ')[0]
console.log(`medians of ${values.runs}, at a load average of ${load}`)
show(
  `export --local`,
  await measure(async () => {
    const dataDir = await mkdtemp(join(folder, 'local-'))
    const { requests: after } = sandbox.control.counters()
    const [cpuBefore, typedAt, typedOn] = [endedCpuSeconds(), performance.now(), Date.now()]
    await run(dataDir, ['export', 'customers', '--local', '--json'])
    const end = (performance.now() - typedAt) / 1000
    const page = sandbox.control.requests({ after }).find(({ url }) => url.startsWith('/customers/'))
    const firstPage = ((page?.receivedAt ?? Number.NaN) - typedOn) / 1000
    return { 's to the first page': firstPage, 's to the end': end, 'CPU-s': endedCpuSeconds() - cpuBefore }
  }),
)

const dataDir = await mkdtemp(join(folder, 'up-'))
const up = await startProcess({
  command: [connector, 'up'],
  env: environment(dataDir),
  until: 'Other commands',
  from: 'stderr',
})
closing.defer(() => endProcess(up.child))
const exported = JSON.parse(await run(dataDir, ['export', 'plans', '--json'])) as ExportDocument
const published = exported.exports[0]?.folder ?? ''
/** Makes each call the first of its kind: a repeated one would attach to the run before. */
const fresh = (number: number) => ['--input', `maxPages=${number + 1}`, '--detach']
const commands: Readonly<Record<string, (number: number) => string[]>> = {
  '--help': () => ['--help'],
  'run list': () => ['run', 'list'],
  'run show': () => ['run', 'show', exported.run],
  'run report': () => ['run', 'report', exported.run],
  'state show': () => ['state', 'show'],
  verify: () => ['verify', published],
  'schedule list': () => ['schedule', 'list'],
  check: () => ['check'],
  'export --detach': (number) => ['export', 'plans', ...fresh(number)],
  'recover --detach': (number) => ['recover', '--dry-run', ...fresh(number)],
}
for (const [name, wordsOf] of Object.entries(commands))
  show(
    name,
    await measure(async (number) => {
      const typedAt = performance.now()
      await run(dataDir, wordsOf(number))
      return { s: (performance.now() - typedAt) / 1000 }
    }),
  )
