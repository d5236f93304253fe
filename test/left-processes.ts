import { readFileSync, readdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { endProcess, identify } from '../core/state/process-identity.ts'

/**
 * Ends the processes that still have the folder in their command line or environment after the grace, and describes
 * them by pid and command. Those of the test runner are left alone. On Linux only: elsewhere it finds none.
 */
export async function endLeftProcesses(folder: string, { graceMs = 10_000 } = {}): Promise<string[]> {
  // Those that were killed, and servers that end with them, may take a moment.
  const deadline = performance.now() + graceMs
  let left = findProcesses(folder)
  while (left.length > 0 && performance.now() < deadline) {
    await sleep(50)
    left = findProcesses(folder)
  }
  await Promise.all(
    left.map(async ({ pid }) => {
      const identity = identify(pid)
      if (identity !== undefined) await endProcess({ identity, graceMs: 0 })
    }),
  )
  return left.map(({ pid, command }) => `${pid} ${command}`)
}

function findProcesses(folder: string): { pid: number; command: string }[] {
  if (process.platform !== 'linux') return []
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      const command = read(`/proc/${name}/cmdline`)
      const isRunner = command.includes('vitest')
      const isOurs = command.includes(folder) || read(`/proc/${name}/environ`).includes(folder)
      return isOurs && !isRunner ? [{ pid: Number(name), command: command.replaceAll('\0', ' ').trim() }] : []
    })
}

/** Empty where the process has ended, or is somebody else's. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
