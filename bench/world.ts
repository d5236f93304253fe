/** What every benchmark needs: options, processes, a service, and workers of a real Temporal server. */
import { Client, Connection } from '@temporalio/client'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs, type ParseArgsOptionsConfig } from 'node:util'
import type { SandboxOptions } from '../sandbox/options.ts'
import { findBinary } from '../scripts/dev-server/find-binary.ts'
import { startDevServer } from '../scripts/dev-server/start-dev-server.ts'
import { environmentOf, startGateway } from '../test/acceptance/bucket/gateway.ts'
import buildGateway, { versitygw } from '../test/acceptance/bucket/versitygw.ts'
import { startPostgres } from '../test/system/destinations/postgres-server.ts'

/**
 * The options of a benchmark. `--help` prints the comment at the top of its file and ends the process; so does, with one
 * sentence, an option that it does not have.
 */
export function readOptions<const T extends ParseArgsOptionsConfig>(file: string, options: T) {
  if (process.argv.includes('--help')) {
    const lines = readFileSync(file, 'utf8').split('\n')
    const end = lines.findIndex((line) => !line.startsWith('//'))
    for (const line of lines.slice(0, end)) console.log(line.replace(/^\/\/ ?/, ''))
    process.exit(0)
  }
  try {
    return parseArgs({ options, args: process.argv.slice(3) }).values
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\nSee --help.`)
    return process.exit(2)
  }
}

/** Prints a line of a table: a name and its figures, by their units. */
export function show(name: string, figures: Readonly<Record<string, number | string>>): void {
  const cells = Object.entries(figures).map(([unit, figure]) => {
    const text = typeof figure === 'number' && !Number.isInteger(figure) ? figure.toFixed(2) : figure
    return `${`${text} ${unit}`.padEnd(20)}  `
  })
  console.log(`${name.padEnd(24)}${cells.join('')}`.trimEnd())
}

/** Starts a process and waits for the first line of its output that contains `until`. */
export async function startProcess(options: {
  command: readonly [string, ...string[]]
  env?: Record<string, string>
  until: string
  from: 'stdout' | 'stderr'
}): Promise<{ child: ChildProcess; line: string }> {
  const [program, ...words] = options.command
  const child = spawn(program, words, {
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const errors: string[] = []
  child.stderr.on('data', (data: Buffer) => errors.push(data.toString()))
  for await (const line of createInterface({ input: child[options.from] }))
    if (line.includes(options.until)) return { child, line }
  throw new Error(`${options.command.join(' ')} ended: ${errors.join('')}`)
}

export async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}

/** The program as people start it. */
export const connector = join(import.meta.dirname, '../scripts/start.js')

const ticksPerSecond = 100

/** CPU seconds (user and system) and peak resident megabytes of a process, from the kernel. */
export function usageOf(pid: number): { cpuSeconds: number; peakMb: number } {
  // What follows its name, in brackets.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
    .map(Number)
  const peakKb = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return { cpuSeconds: (fields[11]! + fields[12]!) / ticksPerSecond, peakMb: Number(peakKb) / 1024 }
}

/** Starts the stand-in service in a process of its own and returns its address. */
export async function startService(
  closing: AsyncDisposableStack,
  { folder, latency = 0, ...options }: SandboxOptions & { folder: string; latency?: number },
): Promise<string> {
  const path = join(folder, `sandbox-${Date.now()}.json`)
  const counts = { subscriptions: 0, plans: 1, retentions: 0, ...options.counts }
  const faults = latency > 0 ? [{ kind: 'latency' as const, ms: latency }] : []
  const all = { token: 'bench', workspace: 'acc_bench', warm: true, faults, ...options, counts }
  await writeFile(path, JSON.stringify(all satisfies SandboxOptions))
  const { child, line } = await startProcess({
    command: [process.execPath, '--max-old-space-size=8000', connector, 'sandbox', '--options', path],
    until: 'http',
    from: 'stdout',
  })
  closing.defer(() => endProcess(child))
  return line.replace(/^.*(?=http)/, '')
}

/** The state and the files of several workers: PostgreSQL and an object store on this machine. */
export async function startFleet(closing: AsyncDisposableStack) {
  const postgres = await startPostgres()
  closing.defer(() => postgres.close())
  await buildGateway()
  if (!existsSync(versitygw())) throw new Error('The object store is built with Go, which is not installed.')
  const bucket = await startGateway()
  closing.defer(() => bucket.close())
  /** The settings of workers that share a new database and a new prefix of the bucket. */
  return async (name: string) => ({
    CONNECTOR_STATE_URL: await postgres.createDatabase(),
    CONNECTOR_FILES_URL: `s3://exports/${name}`,
    ...environmentOf(bucket.endpoint),
  })
}

/** Starts a Temporal server and workers, and connects a client. */
export async function startWorkers(
  closing: AsyncDisposableStack,
  options: {
    dataDir: string
    service: string
    rate: string
    /** Requests in flight of each worker. */
    concurrency: string
    workers?: number
    env?: Record<string, string>
  },
) {
  const { dataDir, workers = 1 } = options
  const { env } = process
  const binary = () => findBinary({ env, startTask: () => ({ end() {} }) })
  const server = await startDevServer({ dataDir, binary })
  closing.defer(() => server.stop())
  const pids: number[] = []
  for (let worker = 0; worker < workers; worker++) {
    const { child } = await startProcess({
      command: [connector, 'worker'],
      env: {
        BILLING_BASE_URL: options.service,
        BILLING_TOKEN: 'bench',
        BILLING_WORKSPACE: 'acc_bench',
        BILLING_REQUESTS_PER_SECOND: options.rate,
        BILLING_CONCURRENCY: String(Number(options.concurrency) * workers),
        CONNECTOR_DATA_DIR: workers === 1 ? dataDir : join(dataDir, `worker-${worker}`),
        TEMPORAL_ADDRESS: server.address,
        ...options.env,
      },
      until: 'listening',
      from: 'stderr',
    })
    closing.defer(() => endProcess(child))
    pids.push(child.pid ?? 0)
  }
  const connection = await Connection.connect({ address: server.address })
  closing.defer(() => connection.close())
  const usage = () => pids.map(usageOf)
  return {
    client: new Client({ connection }),
    cpuSeconds: () => usage().reduce((sum, one) => sum + one.cpuSeconds, 0),
    peakMb: () => usage().map(({ peakMb }) => Math.round(peakMb)),
  }
}

/** Calls the control of a service: its answer, or the JSON lines that it returns. */
export async function askControl(
  url: string,
  method: string,
  options: object | string = {},
): Promise<unknown[]> {
  const body = typeof options === 'string' ? options : JSON.stringify(options)
  const response = await fetch(`${url}/_sandbox/${method}`, { method: 'POST', body })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method}: ${text}`)
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown)
}
