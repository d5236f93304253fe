import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
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

/** The flags that `npm run connector` gives a worker. */
export async function connectorFlags(): Promise<string[]> {
  const { scripts } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8')) as {
    scripts: { connector: string }
  }
  return scripts.connector.split(' ').filter((word) => word.startsWith('--'))
}

export async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}

const ticksPerSecond = 100

/** CPU seconds (user and system) and peak resident megabytes of a process, from the kernel. */
export function usageOf(pid: number): { cpuSeconds: number; peakMb: number } {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  const cpuSeconds = (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
  const peakKb = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return { cpuSeconds, peakMb: Number(peakKb) / 1024 }
}
