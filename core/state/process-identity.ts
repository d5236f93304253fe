import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { isSystemError } from '../storage/system-errors.ts'

/** Identifies a process: pids are reused, pairs of pid and start time are not. */
export interface ProcessIdentity {
  pid: number
  /** In the system's own format; only compared. */
  startTime: string
}

/** The process with this pid; undefined if there is none. */
export function identify(pid: number): ProcessIdentity | undefined {
  const startTime = process.platform === 'linux' ? startTimeFromProc(pid) : startTimeFromPs(pid)
  return startTime === undefined ? undefined : { pid, startTime }
}

export function isAlive({ pid, startTime }: ProcessIdentity): boolean {
  return identify(pid)?.startTime === startTime
}

/** Asks the process to exit and kills it after `graceMs`. Never touches another process that got its pid. */
export async function endProcess({ identity, graceMs }: { identity: ProcessIdentity; graceMs: number }) {
  if (!signal(identity, graceMs > 0 ? 'SIGTERM' : 'SIGKILL')) return
  const deadline = performance.now() + graceMs
  while (isAlive(identity) && performance.now() < deadline) await sleep(20)
  signal(identity, 'SIGKILL')
  while (isAlive(identity)) await sleep(5)
}

function signal(identity: ProcessIdentity, name: 'SIGTERM' | 'SIGKILL'): boolean {
  if (!isAlive(identity)) return false
  try {
    return process.kill(identity.pid, name)
  } catch (error) {
    if (isSystemError(error, 'ESRCH')) return false
    throw error
  }
}

function startTimeFromProc(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // proc(5): the name in parentheses may hold anything; after it come state (field 3) ... starttime (field 22).
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [state] = fields
    return state === 'Z' || state === 'X' ? undefined : fields[22 - 3]
  } catch {
    return undefined
  }
}

function startTimeFromPs(pid: number): string | undefined {
  try {
    const stdio = ['ignore', 'pipe', 'ignore'] as const
    const lines = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      stdio: [...stdio],
    })
    return lines.trim() || undefined
  } catch {
    return undefined
  }
}
