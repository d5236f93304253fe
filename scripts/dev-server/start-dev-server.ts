import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { FolderLockedError } from '../../state/errors.ts'
import { endProcess, isAlive } from '../../state/process-identity.ts'
import { acquireLock } from '../../state/worker-lock.ts'
import type { WorkerLock } from '../../state/worker-lock.ts'
import { freePorts } from './free-ports.ts'
import { keepServer } from './keep-server.ts'
import { becomesReady } from './readiness.ts'
import { readServerRecord } from './server-record.ts'
import type { ServerRecord } from './server-record.ts'
import { DevServerError } from './start-process.ts'
import type { Ports } from './start-process.ts'

/** Another command's server takes 0.4 to 1.2 s to start on two idle cores; a minute is for a busy machine. */
const startTimeoutMs = 60_000
/** A server that has long been up and does not answer soon is stuck. */
const answerTimeoutMs = 5_000

export interface DevServer {
  /** host:port of gRPC; stays the same when the server is started again. */
  address: string
  uiUrl: string | undefined
  /** Of the process that serves now. */
  readonly pid: number
  /** By this call, or by another command that still has it. */
  origin: 'started' | 'shared'
  /** Aborted, with a DevServerError as its reason, when the server ended and could not be started again. */
  lost: AbortSignal
  /** Whether it is shared, and the command that had it has ended: nobody keeps it any more. */
  isAbandoned(): boolean
  /** Resolves when the server is up, again if it just ended. @throws {DevServerError} when it is lost */
  ready(): Promise<void>
  /** Ends the server and waits until it is gone, unless it is shared: then its own command does. */
  stop(options?: { graceMs?: number }): Promise<void>
}

export interface StartDevServer {
  /** The server's database is `temporal.db` in it; its lock, note and log are in `dev-server/`. */
  dataDir: string
  /** Asked for only when a server has to be started. */
  binary: () => Promise<string>
  /** Default: free ones, others when another process takes them first. */
  ports?: Ports | undefined
  /** Default: true. */
  ui?: boolean
  /** How free ports are found. */
  choosePorts?: () => Promise<Ports>
}

/** Where a server's files are. */
export interface Place {
  folder: string
  database: string
}

/**
 * A Temporal dev server on the data folder's own database, ready to serve: the living one of this folder, or a new
 * one. Never two on one database: they damage each other. The process that starts one holds the folder's lock until
 * it is stopped, starts it again on the same port if it ends by itself, and takes it with it however it ends.
 *
 * @throws {DevServerError} when none comes up
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

/** The server of the note, if it lives and is this folder's. */
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
    // Its owner is gone, and it is about to follow.
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
