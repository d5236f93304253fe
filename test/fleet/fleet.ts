/** Several worker processes on one state and one data folder, and what strikes them. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Random } from '../chaos/random.ts'
import { startIdleProxy, startTemporalProxy } from './proxies.ts'

/**
 * Where a worker stops itself: after its connection was asked for; in the transaction of a claim; after its commit; between
 * the look at the clock and the first byte; after the last one.
 */
export const freezePoints = ['beforeClaim', 'insideClaim', 'afterClaim', 'afterLook', 'afterWrite'] as const
export type FreezePoint = (typeof freezePoints)[number]

interface Member {
  child: ChildProcess
  temporal: Awaited<ReturnType<typeof startTemporalProxy>>
  /** What happens to it now: others leave it alone. */
  isStruck: boolean
}

const program = fileURLToPath(new URL('probes/fleet-worker.ts', import.meta.url))

export async function startFleet(options: {
  env: Record<string, string>
  workers: number
  temporalAddress: string
  /** How long the service keeps an idle connection open. */
  idleMs: number
}) {
  const { env, workers, temporalAddress, idleMs } = options
  const service = await startIdleProxy({ url: env['BILLING_BASE_URL'] ?? '', idleMs })
  const start = async (): Promise<Member> => {
    const temporal = await startTemporalProxy(temporalAddress)
    const child = fork(program, [], {
      env: {
        ...env,
        PATH: process.env['PATH'],
        BILLING_BASE_URL: service.url,
        TEMPORAL_ADDRESS: temporal.address,
      },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    const kill = () => child.kill('SIGKILL')
    process.once('exit', kill)
    child.once('exit', () => process.off('exit', kill))
    await once(child, 'message')
    return { child, temporal, isStruck: false }
  }
  const members = await Promise.all(Array.from({ length: workers }, start))
  const end = async ({ child, temporal }: Member) => {
    temporal.close()
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  // Several may get to the point at the same moment; one of them stays frozen.
  const waking = setInterval(() => {
    for (const { child, isStruck } of members) if (!isStruck && isStopped(child.pid)) child.kill('SIGCONT')
  }, 250)
  return {
    /** Kills a worker at random, and starts another one. */
    async kill(random: Random) {
      const index = random.below(members.length)
      const member = members[index]
      if (member === undefined || member.isStruck) return false
      member.isStruck = true
      await end(member)
      members[index] = await start()
      return true
    },
    /** Freezes the next worker whose write gets to `point`, and returns how to wake it; undefined if none gets there. */
    async freeze({
      point,
      isDeaf,
      withinMs = 5_000,
    }: {
      point: FreezePoint
      isDeaf: boolean
      withinMs?: number
    }) {
      const member = await nextFrozen(members, point, withinMs)
      if (member === undefined) return undefined
      if (isDeaf) member.temporal.setDeaf(true)
      return async () => {
        member.child.kill('SIGCONT')
        if (isDeaf) await wait(2_500)
        member.temporal.setDeaf(false)
        member.isStruck = false
      }
    },
    async close() {
      clearInterval(waking)
      await Promise.all(members.map(end))
      service.close()
    },
  }
}

export type Fleet = Awaited<ReturnType<typeof startFleet>>

async function nextFrozen(
  members: readonly Member[],
  point: FreezePoint,
  withinMs: number,
): Promise<Member | undefined> {
  const able = members.filter(({ isStruck }) => !isStruck)
  const tell = (message: FreezePoint | 'none') => {
    for (const { child } of able) if (child.connected) child.send(message)
  }
  tell(point)
  const until = performance.now() + withinMs
  try {
    while (performance.now() < until) {
      const frozen = able.find(({ child, isStruck }) => !isStruck && isStopped(child.pid))
      if (frozen !== undefined) {
        frozen.isStruck = true
        return frozen
      }
      await wait(5)
    }
    return undefined
  } finally {
    tell('none')
  }
}

function isStopped(pid: number | undefined): boolean {
  try {
    return /^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
