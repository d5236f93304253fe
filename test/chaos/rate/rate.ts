/**
 * Several processes that share one rate on PostgreSQL, as the service sees them: how many requests arrive in any second,
 * while processes are frozen and killed.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Random } from '../random.ts'

export interface RateWorkerOptions {
  /** The PostgreSQL that has the shares. */
  url: string
  schema: string
  baseUrl: string
  requestsPerSecond: number
  /** Requests in flight, of all workers together. */
  concurrency: number
  /** How many requests of either kind each worker keeps waiting. */
  writers: number
  readers: number
  runRate?: number | undefined
}

interface Arrival {
  /** By performance.now(). */
  at: number
  write: boolean
}

/** A service that answers after a while, and notes when each request arrives. */
async function startService(latencyMs: number) {
  const arrivals: Arrival[] = []
  const service = { refusing: undefined as { once: boolean; headers: Record<string, string> } | undefined }
  const refusedAt: number[] = []
  const reply = (response: ServerResponse, write: boolean) => {
    const { refusing } = service
    if (refusing !== undefined) {
      if (refusing.once) service.refusing = undefined
      refusedAt.push(performance.now())
      response.writeHead(429, { 'content-type': 'application/json', ...refusing.headers })
      return response.end('{"detail":"slow down"}')
    }
    response.writeHead(200, { 'content-type': 'application/json' })
    return response.end(write ? '{"id":"a"}' : '{"count":0,"results":[],"next":null}')
  }
  const server = createServer((request, response) => {
    const write = request.method === 'POST'
    arrivals.push({ at: performance.now(), write })
    request.resume()
    setTimeout(() => reply(response, write), latencyMs)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return { arrivals, refusedAt, service, baseUrl: `http://127.0.0.1:${port}`, close: () => server.close() }
}

type Worker = Partial<Pick<RateWorkerOptions, 'readers' | 'writers' | 'runRate'>>

/** Starts the processes; each of `workers` says what one of them does. */
export async function startRate(options: {
  url: string
  schema: string
  requestsPerSecond: number
  concurrency?: number
  latencyMs?: number
  workers: readonly Worker[]
}) {
  const { url, schema, requestsPerSecond, concurrency = 64, latencyMs = 100, workers } = options
  const { arrivals, refusedAt, service, baseUrl, close } = await startService(latencyMs)
  const program = fileURLToPath(new URL('probes/rate-worker.ts', import.meta.url))
  const start = async (worker: Worker): Promise<ChildProcess> => {
    const given = { url, schema, baseUrl, requestsPerSecond, concurrency, readers: 0, writers: 0, ...worker }
    const child = fork(program, [JSON.stringify(given)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    await once(child, 'message')
    return child
  }
  const processes = await Promise.all(workers.map(start))
  const kill = async (index: number) => {
    const child = processes[index]
    if (child === undefined) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  return {
    arrivals,
    refusedAt,
    service,
    /** Freezes one process for a while. */
    async freeze(index: number, ms: number) {
      processes[index]?.kill('SIGSTOP')
      await wait(ms)
      processes[index]?.kill('SIGCONT')
    },
    /** Kills one process and starts another in its place. */
    async replace(index: number) {
      await kill(index)
      processes[index] = await start(workers[index] ?? {})
    },
    async close() {
      await Promise.all(processes.map((_, index) => kill(index)))
      close()
    },
  }
}

export type Rate = Awaited<ReturnType<typeof startRate>>

/** The greatest number of arrivals in any second. */
export function mostInASecond(arrivals: readonly Arrival[]): number {
  let most = 0
  let from = 0
  for (const [index, { at }] of arrivals.entries()) {
    while (at - (arrivals[from]?.at ?? 0) >= 1_000) from += 1
    most = Math.max(most, index - from + 1)
  }
  return most
}

/** Freezes and kills processes at random, one at a time, so that others are always running. */
export async function disturb(
  rate: Rate,
  { ms, seed, workers, kills = true }: { ms: number; seed: number; workers: number; kills?: boolean },
): Promise<{ frozen: number; killed: number }> {
  const random = new Random(seed)
  const until = performance.now() + ms
  const done = { frozen: 0, killed: 0 }
  while (performance.now() < until) {
    const index = random.below(workers)
    if (kills && random.happens(0.2)) {
      await rate.replace(index)
      done.killed += 1
    } else {
      await rate.freeze(index, 50 + random.below(1_500))
      done.frozen += 1
    }
    await wait(random.below(400))
  }
  return done
}
