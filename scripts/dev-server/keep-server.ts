import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { endProcess, isAlive } from '../../core/state/process-identity.ts'
import type { WorkerLock } from '../../core/state/data-folder-lock.ts'
import { becomesReady, isOpen } from './readiness.ts'
import { removeServerRecord, writeServerRecord } from './server-record.ts'
import type { Place, StartDevServer } from './server-place.ts'
import { DevServerError, startProcess } from './start-process.ts'
import type { Ports, ServerProcess } from './start-process.ts'

/** The server ends in 1.2 s when asked. */
const stopGraceMs = 5_000
/** The most starts: another process may take a port between its choice and its use, also one that the server chooses. */
const mostStarts = 5
/** The most restarts within a minute; a server that ends more often is lost. */
const mostRestarts = 5

type KeepServer = StartDevServer &
  Place & {
    lock: WorkerLock
    ui: boolean
    choosePorts: () => Promise<Ports>
    startTimeoutMs: number
  }

/** Starts a server and restarts it on the same ports and database until it is stopped or lost. */
export async function keepServer(options: KeepServer) {
  const { folder, lock } = options
  const lost = new AbortController()
  let isStopping = false
  let isUp = true
  const start = (ports: Ports) => startOnce({ ...options, ports, isWanted: () => !isStopping })
  const first = await startOnFreePorts({ ...options, start })
  let { server } = first
  const keep = async () => {
    for (const restarts: number[] = []; ;) {
      await server.ended
      if (isStopping) return
      isUp = false
      restarts.push(performance.now())
      try {
        refuseFutile({ folder, lock, restarts })
        server = await start(first.ports)
        isUp = true
      } catch (error) {
        if (!isStopping) lost.abort(error)
        return
      }
    }
  }
  const keeping = keep()
  const end = async (graceMs: number) => {
    isStopping = true
    await endProcess({ identity: server.record, graceMs })
    await keeping
    // The server may have just been restarted.
    await endProcess({ identity: server.record, graceMs })
    removeServerRecord(folder)
    lock.release()
  }
  let stopped: Promise<void> | undefined
  return {
    address: server.record.address,
    uiUrl: server.record.uiUrl,
    get pid() {
      return server.record.pid
    },
    lost: lost.signal,
    async ready() {
      const isComing = () => !lost.signal.aborted && !isStopping && (!isUp || !isAlive(server.record))
      while (isComing()) await sleep(20)
      lost.signal.throwIfAborted()
    },
    stop: ({ graceMs = stopGraceMs }: { graceMs?: number } = {}) => (stopped ??= end(graceMs)),
  }
}

/** @throws {DevServerError} if another start would not help */
function refuseFutile({ folder, lock, restarts }: RefuseFutile): void {
  const logFile = join(folder, 'temporal.log')
  if (!lock.isHeld()) {
    const what = `ended, and it is not started again because somebody removed ${join(folder, 'worker.lock')}`
    throw new DevServerError({ logFile, what })
  }
  const lately = restarts.filter((at) => at > performance.now() - 60_000)
  if (lately.length > mostRestarts)
    throw new DevServerError({ logFile, what: `ended ${lately.length} times within a minute` })
}

interface RefuseFutile {
  folder: string
  lock: WorkerLock
  restarts: readonly number[]
}

/** A start on other ports may succeed. */
class StartAgainError extends DevServerError {}

async function startOnFreePorts({
  ports: given,
  choosePorts,
  start,
}: KeepServer & { start: (ports: Ports) => Promise<ServerProcess> }) {
  for (let starts = 1; ; starts += 1) {
    const ports = given ?? (await choosePorts())
    try {
      return { server: await start(ports), ports }
    } catch (error) {
      const isHopeless = given !== undefined || starts === mostStarts
      if (!(error instanceof StartAgainError) || isHopeless) throw error
    }
  }
}

async function startOnce(
  options: KeepServer & { ports: Ports; isWanted: () => boolean },
): Promise<ServerProcess> {
  const { folder, database, binary, ports, ui, startTimeoutMs, isWanted, onSpawned } = options
  const logFile = join(folder, 'temporal.log')
  const portTaken = () => {
    const what = `did not start: another program uses its port ${ports.grpc} or ${ports.ui}`
    return new StartAgainError({ logFile, what })
  }
  // Checked first: another server on this port would answer instead of this one.
  if (await isOpen(`127.0.0.1:${ports.grpc}`)) throw portTaken()
  const server = await startProcess({ binary: await binary(), database, logFile, ports, ui })
  const { record } = server
  writeServerRecord({ folder, record })
  onSpawned?.()
  const alive = () => isAlive(record) && isWanted()
  if (await becomesReady({ address: record.address, isAlive: alive, timeoutMs: startTimeoutMs }))
    return server
  const endedItself = !isAlive(record)
  await endProcess({ identity: record, graceMs: 0 })
  await server.ended
  if (!endedItself)
    throw new DevServerError({ logFile, what: `did not answer in ${startTimeoutMs / 1000} s` })
  const log = readFileSync(logFile, 'utf8')
  if (/address already in use/i.test(log)) throw portTaken()
  const why = whyEnded({ log, database })
  if (why !== undefined) throw new DevServerError({ logFile, what: `ended at its start: ${why}` })
  const last = log.trim().split('\n').at(-1)?.slice(0, 300)
  const said = last ? `the last line of its log is: ${last}` : 'it wrote nothing'
  throw new StartAgainError({ logFile, what: `ended at its start for no reason that is known here; ${said}` })
}

/** Explains known log lines of the server, which are written for developers of Temporal. */
function whyEnded({ log, database }: { log: string; database: string }): string | undefined {
  if (/not a database|malformed/i.test(log))
    return `its database ${database} is damaged. Move that file aside and start again; unfinished runs are then started again by their own commands, and what they sent is still recorded`
  if (/no space left|disk is full/i.test(log)) return `no space is left for its database ${database}`
  if (/readonly|read-only|permission denied|unable to open database/i.test(log))
    return `it may not write its database ${database}`
  return undefined
}
