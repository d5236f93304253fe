import { spawn, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import type { World } from './world.ts'

const connector = fileURLToPath(new URL('../../../scripts/start.js', import.meta.url))

/** A command of the connector in a process group of its own, so that it can be killed with all it started. */
export function startConnector(
  world: World,
  words: string[],
  env: Record<string, string> = {},
): ChildProcess {
  const child = spawn(process.execPath, [connector, ...words], {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...world.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  onTestFinished(() => killGroup(child))
  return child
}

export function killGroup(child: ChildProcess): void {
  try {
    process.kill(-(child.pid ?? 0), 'SIGKILL')
  } catch {
    // It has ended.
  }
}

export function says(child: ChildProcess, word: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let heard = ''
    child.stderr?.on('data', (data) => {
      heard += String(data)
      if (heard.includes(word)) resolve()
    })
    child.once('exit', () => reject(new Error(`ended without saying ${word}: ${heard}`)))
  })
}

/** Until the service has been asked for so many pages more. */
export async function pagesRead(world: World, pages: number): Promise<void> {
  const from = world.sandbox.control.counters().requests
  while (world.sandbox.control.counters().requests < from + pages) await sleep(5)
}

// Ties keep their order here: where nothing drifts, the same list must give the same bytes.
export const quiet = { counts: { customers: 6000 }, tieOrder: 'stable' } as const
export const input = { resources: ['customers' as const] }
