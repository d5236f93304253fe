/** Several worker processes on one state and a bucket, and what strikes them. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startServiceProxy, startTemporalProxy } from './proxies.ts'

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
  /** Each worker has a folder of its own, which is lost with it. */
  env: Record<string, string>
  workers: number
  temporalAddress: string
  /** How long the service keeps an idle connection open. */
  idleMs: number
}) {
  const { env, workers, temporalAddress, idleMs } = options
  const service = await startServiceProxy({ url: env['BILLING_BASE_URL'] ?? '', idleMs })
  let isClosed = false
  const lost: string[] = []
  /** Again as long as it ends before it works, as a supervisor does: PostgreSQL may be away. */
  const start = async (): Promise<Member> => {
    const temporal = await startTemporalProxy(temporalAddress)
    for (;;) {
      const child = startChild(temporal.address)
      const first = await Promise.race([once(child, 'message'), once(child, 'exit').then(() => undefined)])
      const member = { child, temporal, isStruck: false }
      child.once('exit', (code, signal) => {
        if (!member.isStruck && !isClosed) lost.push(`a worker ended by itself (${code ?? signal})`)
      })
      if (first !== undefined || isClosed) return member
      await wait(500)
    }
  }
  const startChild = (temporal: string) => {
    const own = mkdtempSync(join(tmpdir(), 'fleet-worker-'))
    const child = fork(program, [], {
      env: {
        ...env,
        PATH: process.env['PATH'],
        BILLING_BASE_URL: service.url,
        TEMPORAL_ADDRESS: temporal,
        CONNECTOR_DATA_DIR: own,
      },
      // What it says when it cannot start is expected.
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    const kill = () => child.kill('SIGKILL')
    process.once('exit', kill)
    child.once('exit', () => {
      process.off('exit', kill)
      rmSync(own, { recursive: true, force: true })
    })
    return child
  }
  const members = await Promise.all(Array.from({ length: workers }, start))
  const end = async ({ child, temporal }: Member) => {
    temporal.close()
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  // Several may get to the point at the same moment; one of them stays frozen. While one is awaited none is woken: it would
  // be woken before it is seen, and stops at its point only once.
  let awaited = 0
  const waking = setInterval(() => {
    if (awaited > 0) return
    for (const { child, isStruck } of members) if (!isStruck && isStopped(child.pid)) child.kill('SIGCONT')
  }, 250)
  return {
    /** Workers that ended although nothing struck them, a sentence each. */
    lost: lost as readonly string[],
    /** The workers that nothing happens to. */
    pids: () => members.flatMap(({ child, isStruck }) => (isStruck ? [] : [child.pid ?? 0])),
    /** Kills a worker that nothing else happens to, and starts another one; `replaced` resolves when it works. */
    async kill(pid: number): Promise<{ replaced: Promise<void> } | undefined> {
      const index = members.findIndex(({ child, isStruck }) => child.pid === pid && !isStruck)
      const member = members[index]
      if (member === undefined) return undefined
      member.isStruck = true
      await end(member)
      const replaced = start().then((next) => void (members[index] = next))
      return { replaced }
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
      awaited += 1
      const member = await nextFrozen(members, point, withinMs).finally(() => (awaited -= 1))
      return member && toWake(member, isDeaf)
    },
    /** Freezes a worker at once, and returns how to wake it; undefined if something else happens to it. */
    freezeNow({ pid, isDeaf }: { pid: number; isDeaf: boolean }) {
      const member = members.find(({ child, isStruck }) => child.pid === pid && !isStruck)
      if (member === undefined) return undefined
      member.isStruck = true
      member.child.kill('SIGSTOP')
      return toWake(member, isDeaf)
    },
    /** Nobody reaches the service for so long; what has arrived is carried out and not answered. */
    async loseService(ms: number) {
      service.setAway(true)
      await wait(ms)
      service.setAway(false)
    },
    async close() {
      isClosed = true
      clearInterval(waking)
      await Promise.all(members.map(end))
      service.close()
    },
  }
}

export type Fleet = Awaited<ReturnType<typeof startFleet>>

/** Gives how to wake a frozen worker, which hears nothing from Temporal for a while if it is deaf. */
function toWake(member: Member, isDeaf: boolean): () => Promise<void> {
  if (isDeaf) member.temporal.setDeaf(true)
  return async () => {
    member.child.kill('SIGCONT')
    if (isDeaf) await wait(2_500)
    member.temporal.setDeaf(false)
    member.isStruck = false
  }
}

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
