import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import { until, type World } from '../export/world.ts'

const connector = fileURLToPath(new URL('../../../scripts/start.js', import.meta.url))

/** A worker in a process of its own, so that it can be killed. */
export async function startWorkerProcess(
  world: World,
  env: Record<string, string> = {},
): Promise<ChildProcess> {
  const child = spawn(process.execPath, [connector, 'worker'], {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...world.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let heard = ''
  child.stderr?.on('data', (data) => (heard += String(data)))
  await until(() => heard.includes('listening') || child.exitCode !== null)
  expect(heard).toContain('listening')
  return child
}

export async function kill(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  const exited = once(child, 'exit')
  child.kill(signal)
  await exited
}
