import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** Starts a Node process and waits for the first line of its output that contains `until`. */
export async function startNode(options: {
  args: string[]
  env?: Record<string, string>
  until: string
  from: 'stdout' | 'stderr'
}): Promise<{ child: ChildProcess; line: string }> {
  const child = spawn(process.execPath, options.args, {
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const stream = options.from === 'stdout' ? child.stdout : child.stderr
  const heard: string[] = []
  child.stderr?.on('data', (data: Buffer) => heard.push(data.toString()))
  if (stream === null) throw new Error('no pipe')
  for await (const line of createInterface({ input: stream }))
    if (line.includes(options.until)) return { child, line }
  throw new Error(`${options.args.join(' ')} ended: ${heard.join('')}`)
}

/** How `npm run connector` starts Node: variables, flags and the program. */
async function connectorScript(checkout: string) {
  const { scripts } = JSON.parse(await readFile(join(checkout, 'package.json'), 'utf8')) as {
    scripts: { connector: string }
  }
  const words = scripts.connector.split(' ')
  const node = words.indexOf('node')
  const env = Object.fromEntries(words.slice(0, node).map((word) => word.split('=') as [string, string]))
  return { env, args: words.slice(node + 1) }
}

const thisCheckout = join(import.meta.dirname, '..')

/** What it gives Node: flags and the program. */
export async function connectorArgs(checkout = thisCheckout): Promise<string[]> {
  const { args } = await connectorScript(checkout)
  return args.map((word) => (word.startsWith('--') ? word : join(checkout, word)))
}

/** The flags that it gives a worker. */
export const connectorFlags = async () => (await connectorArgs()).filter((word) => word.startsWith('--'))

/** The variables that it sets. */
export const connectorEnv = async (checkout = thisCheckout) => (await connectorScript(checkout)).env

export async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}

export const ticksPerSecond = 100

/** CPU seconds (user and system) and peak resident megabytes of a process, from the kernel. */
export function usageOf(pid: number): { cpuSeconds: number; peakMb: number } {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  const cpuSeconds = (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
  const peakKb = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return { cpuSeconds, peakMb: Number(peakKb) / 1024 }
}

/** CPU seconds of the whole machine since its start: used, and in total. */
export function machineCpu(): { used: number; all: number } {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n')
  const [user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft = 0, stolen = 0] = line
    .split(/ +/)
    .slice(1)
    .map(Number)
  const used = (user + nice + system + interrupts + soft + stolen) / ticksPerSecond
  return { used, all: used + (idle + waiting) / ticksPerSecond }
}
