import type { StartDevServer, Place } from './server-place.ts'
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { FolderLockedError } from '../../core/state/errors.ts'
import { endProcess, isAlive } from '../../core/state/process-identity.ts'
import { acquireLock } from '../../core/state/data-folder-lock.ts'
import type { WorkerLock } from '../../core/state/data-folder-lock.ts'
import { freePorts } from './free-ports.ts'
import { keepServer } from './keep-server.ts'
import { becomesReady } from './readiness.ts'
import { readServerRecord } from './server-record.ts'
import type { ServerRecord } from './server-record.ts'
import { DevServerError } from './start-process.ts'
import type { Ports } from './start-process.ts'

/**
 * In ms. Another command's server takes 0.4 to 1.2 s to start on two idle cores; a minute allows for a busy
 * machine.
 */
const startTimeoutMs = 60_000
/** In ms. A server that has been running for long and does not answer within this time is stuck. */
const answerTimeoutMs = 5_000

export interface DevServer {
  /** host:port of gRPC; unchanged across restarts. */
  address: string
  uiUrl: string | undefined
  /** The id of the current server process. */
  readonly pid: number
  /** `started` by this call, or `shared` with the command that started it. */
  origin: 'started' | 'shared'
  /** Aborted with a DevServerError when the server ended and could not be restarted. */
  lost: AbortSignal
  /** Whether the server is shared and the command that ran it has ended, so that nothing restarts it. */
  isAbandoned(): boolean
  /**
   * Resolves when the server is up, after a restart if it has just ended.
   *
   * @throws {DevServerError} the server is lost
   */
  ready(): Promise<void>
  /** Stops the server and waits until it is gone. A shared server is left to the command that started it. */
  stop(options?: { graceMs?: number }): Promise<void>
}

/**
 * Returns a ready Temporal dev server on the data folder's own database: the folder's running server, or a new one.
 * Two servers would damage the database, so the process that starts one holds the folder's lock until it is
 * stopped. It restarts the server on the same port if it ends. The server ends with the process, however that ends.
 *
 * @throws {DevServerError} no server could be started
 */
export async function startDevServer(options: StartDevServer): Promise<DevServer> {
  const dataDir = resolve(options.dataDir)
  const folder = join(dataDir, 'dev-server')
  const place = { folder, database: join(dataDir, 'temporal.db') }
  mkdirSync(folder, { recursive: true })
  const deadline = performance.now() + startTimeoutMs
  for (;;) {
    const lock = lockOf(folder)
    if (lock !== undefined) return await serve({ ...options, ...place, lock })
    const shared = noted(place)
    if (shared !== undefined && (await answersSoon(shared))) return share({ ...place, record: shared })
    if (performance.now() > deadline) {
      throw new DevServerError({
        logFile: join(folder, 'temporal.log'),
        what: 'of another command never came up',
      })
    }
    await sleep(50)
  }
}

function share({ record, ...place }: Place & { record: ServerRecord }): DevServer {
  const isAbandoned = () => {
    const lock = lockOf(place.folder)
    lock?.release()
    return lock !== undefined
  }
  return {
    address: record.address,
    uiUrl: record.uiUrl,
    get pid() {
      return noted(place)?.pid ?? record.pid
    },
    origin: 'shared',
    lost: new AbortController().signal,
    isAbandoned,
    async ready() {
      for (const until = performance.now() + startTimeoutMs; performance.now() < until; await sleep(50)) {
        const server = noted(place)
        if (isAbandoned() || (server !== undefined && (await answersSoon(server)))) return
      }
    },
    stop: () => Promise.resolve(),
  }
}

function lockOf(folder: string): WorkerLock | undefined {
  try {
    return acquireLock({ folder, role: 'command with the dev server' })
  } catch (error) {
    if (error instanceof FolderLockedError) return undefined
    throw error
  }
}

/** The recorded server, if it is running and belongs to this folder. */
function noted({ folder, database }: Place): ServerRecord | undefined {
  const record = readServerRecord(folder)
  return record?.database === database && isAlive(record) ? record : undefined
}

function answersSoon(record: ServerRecord): Promise<boolean> {
  return becomesReady({
    address: record.address,
    isAlive: () => isAlive(record),
    timeoutMs: answerTimeoutMs,
  })
}

async function serve(options: StartDevServer & Place & { lock: WorkerLock }): Promise<DevServer> {
  const { lock, ui = true, choosePorts = twoPorts } = options
  try {
    // A server whose owner is gone ends in a moment.
    const orphan = noted(options)
    if (orphan !== undefined) await endProcess({ identity: orphan, graceMs: 0 })
    const kept = await keepServer({ ...options, ui, choosePorts, startTimeoutMs })
    return Object.assign(kept, { origin: 'started' as const, isAbandoned: () => false })
  } catch (error) {
    lock.release()
    throw error
  }
}

async function twoPorts(): Promise<Ports> {
  const [grpc = 0, ui = 0] = await freePorts(2)
  return { grpc, ui }
}
