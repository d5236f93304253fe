// npm run bench:start -- [--runs 7] [--customers 5000] [--beside ../other-checkout] [--only local|commands]
//
// How long people wait: `export --local` from typing to its first request for a page and to its end, each time in a new
// data folder, and commands that connect to a running `up`. Every time is that of a whole process, and every command
// runs once before it counts. With `--beside`, another checkout does the same, alternating with this one.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import type { ExportDocument } from '../core/exports/report.ts'
import { createSandbox } from '../sandbox/sandbox.ts'
import { connectorCommand, endedCpuSeconds, endProcess, readOptions, startNode } from './world.ts'

const values = readOptions(import.meta.filename, {
  runs: { type: 'string', default: '7' },
  customers: { type: 'string', default: '5000' },
  beside: { type: 'string', multiple: true, default: [] },
  only: { type: 'string' },
})
const runs = Number(values.runs)
const checkouts = [join(import.meta.dirname, '..'), ...values.beside.map((path) => resolve(path))]
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

interface Call {
  checkout: string
  dataDir: string
  words: readonly string[]
}

async function run({ checkout, dataDir, words }: Call): Promise<string> {
  const connector = await connectorCommand(checkout)
  const env = { ...process.env, ...connector.env, ...environment(dataDir) }
  const { stdout } = await promisify(execFile)(process.execPath, [...connector.args, ...words], { env })
  return stdout
}

/** Seconds from typing `export customers --local` to its first request for a page and to its end, and CPU seconds. */
async function exportLocally(checkout: string) {
  const dataDir = await mkdtemp(join(folder, 'local-'))
  const { requests: after } = sandbox.control.counters()
  const [cpuBefore, typedAt, typedOn] = [endedCpuSeconds(), performance.now(), Date.now()]
  await run({ checkout, dataDir, words: ['export', 'customers', '--local', '--json'] })
  const end = (performance.now() - typedAt) / 1000
  const page = sandbox.control.requests({ after }).find(({ url }) => url.startsWith('/customers/'))
  const firstPage = ((page?.receivedAt ?? Number.NaN) - typedOn) / 1000
  return { firstPage, end, cpu: endedCpuSeconds() - cpuBefore }
}

async function time(call: Call): Promise<number> {
  const typedAt = performance.now()
  await run(call)
  return (performance.now() - typedAt) / 1000
}

/** A running `up`, and the commands that connect to it or to its folder. */
async function startUp(checkout: string) {
  const dataDir = await mkdtemp(join(folder, 'up-'))
  const connector = await connectorCommand(checkout)
  const env = { ...connector.env, ...environment(dataDir) }
  const args = [...connector.args, 'up']
  const up = await startNode({ args, env, until: 'Other commands', from: 'stderr' })
  closing.defer(() => endProcess(up.child))
  const words = ['export', 'plans', '--json']
  const exported = JSON.parse(await run({ checkout, dataDir, words })) as ExportDocument
  return { checkout, dataDir, exported: exported.run, published: exported.exports[0]?.folder ?? '' }
}

/** `fresh` makes each call of a command the first of its kind: a repeated one would attach to the run before. */
const commandsOf = ({
  exported,
  published,
  fresh,
}: {
  exported: string
  published: string
  fresh: number
}) => [
  ['--help'],
  ['run', 'list'],
  ['run', 'show', exported],
  ['run', 'report', exported],
  ['state', 'show'],
  ['verify', published],
  ['schedule', 'list'],
  ['check'],
  ['export', 'plans', '--max-pages', String(fresh), '--detach'],
  ['recover', '--dry-run', '--max-pages', String(fresh), '--detach'],
]

const round = (seconds: number) => seconds.toFixed(2)

function show(name: string, times: readonly number[]): void {
  const sorted = times.toSorted((a, b) => a - b)
  const median = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  console.log(`${name.padEnd(48)} median ${round(median)}   ${sorted.map(round).join(' ')}`)
}

const load = () => `load average ${readFileSync('/proc/loadavg', 'utf8').split(' ')[0]}`
const nameOf = (checkout: string) => (checkouts.length === 1 ? '' : ` ${checkout}`)

if (values.only !== 'commands') {
  console.log(`export --local of ${values.customers} customers, in s; ${load()}`)
  const measured = new Map(
    checkouts.map((checkout) => [checkout, [] as Awaited<ReturnType<typeof exportLocally>>[]]),
  )
  for (let number = 0; number <= runs; number += 1)
    for (const checkout of checkouts) {
      const one = await exportLocally(checkout)
      if (number > 0) measured.get(checkout)?.push(one)
    }
  for (const [checkout, all] of measured)
    for (const what of ['firstPage', 'end', 'cpu'] as const)
      show(
        `${what}${nameOf(checkout)}`,
        all.map((one) => one[what]),
      )
}

if (values.only !== 'local') {
  console.log(`commands beside a running worker, in s; ${load()}`)
  const ups = []
  for (const checkout of checkouts) ups.push(await startUp(checkout))
  const commandCount = commandsOf({ exported: '', published: '', fresh: 1 }).length
  for (let at = 0; at < commandCount; at += 1) {
    const times = ups.map((): number[] => [])
    for (let number = 0; number <= runs; number += 1)
      for (const [index, up] of ups.entries()) {
        const seconds = await time({ ...up, words: commandsOf({ ...up, fresh: number + 1 })[at] ?? [] })
        if (number > 0) times[index]?.push(seconds)
      }
    for (const [index, up] of ups.entries())
      show(
        `${commandsOf({ exported: 'RUN', published: 'FOLDER', fresh: 1 })[at]?.join(' ')}${nameOf(up.checkout)}`,
        times[index] ?? [],
      )
  }
}
