import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { FolderLockedError } from '../../core/state/errors.ts'
import { acquireLock } from '../../core/state/data-folder-lock.ts'
import type { WorkerLock } from '../../core/state/data-folder-lock.ts'
import { endProcess, isAlive } from '../../core/state/process-identity.ts'
import { becomesReady } from './readiness.ts'
import { readServerRecord, removeServerRecord, writeServerRecord } from './server-record.ts'
import type { ServerRecord } from './server-record.ts'
import { DevServerError, startProcess } from './start-process.ts'
import type { Ports } from './start-process.ts'

/** A start takes 0.4 to 1.2 s on two idle cores; a minute is for a machine that does much else. */
const startTimeoutMs = 60_000
/** An orphan has long been up: what does not answer soon is stuck. */
const adoptTimeoutMs = 5_000
/** It ends in 1.2 s when asked. */
const stopGraceMs = 5_000
/** What does not answer will hardly listen either, and its database takes no harm from a SIGKILL. */
const stuckGraceMs = 1_000

export interface DevServer {
  /** host:port of gRPC. */
  address: string
  uiUrl: string | undefined
  pid: number
  /** By this call, by a command that was killed and left it, or by one that still has it. */
  origin: 'started' | 'adopted' | 'shared'
  /** Whether it is shared, and the command that had it has ended: nobody keeps it any more. */
  isAbandoned(): boolean
  /** Ends the server and waits until it is gone, unless it is shared: then its own command does. */
  stop(options?: { graceMs?: number }): Promise<void>
}

export interface StartDevServer {
  /** The server's database is `temporal.db` in it; its lock, note and log lie in `dev-server/`. */
  dataDir: string
  /** Asked for only where a server has to be started. */
  binary: () => Promise<string>
  /** Default: free ones. */
  ports?: Ports
  /** Default: true. */
  ui?: boolean
}

/**
 * A Temporal dev server on the data folder's own database, ready to serve: the living one of this folder, the one
 * that a killed command left behind, or a new one. Never two on one database: they damage each other. Whoever
 * starts or adopts one holds the folder's lock until it is stopped.
 *
 * Throws DevServerError where none comes up.
 */
export async function startDevServer(options: StartDevServer): Promise<DevServer> {
  const dataDir = resolve(options.dataDir)
  const folder = join(dataDir, 'dev-server')
  const database = join(dataDir, 'temporal.db')
  mkdirSync(folder, { recursive: true })
  const deadline = performance.now() + startTimeoutMs
  for (;;) {
    const lock = lockOf(folder)
    if (lock !== undefined) return await serve({ ...options, folder, database, lock })
    const shared = await livingServer({ folder, database })
    if (shared !== undefined) return share({ record: shared, folder })
    if (performance.now() > deadline) {
      throw new DevServerError({
        logFile: join(folder, 'temporal.log'),
        what: 'of another command never came up',
      })
    }
    await sleep(50)
  }
}

function share({ record, folder }: { record: ServerRecord; folder: string }): DevServer {
  const isFree = () => {
    const lock = lockOf(folder)
    lock?.release()
    return lock !== undefined
  }
  return {
    ...handle(record),
    origin: 'shared',
    isAbandoned: () => !isAlive(record) || isFree(),
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

interface Place {
  folder: string
  database: string
}

/** The noted server, if it lives, is this folder's and answers. */
async function livingServer({ folder, database }: Place): Promise<ServerRecord | undefined> {
  const record = noted({ folder, database })
  return record !== undefined && (await answersSoon(record)) ? record : undefined
}

function noted({ folder, database }: Place): ServerRecord | undefined {
  const record = readServerRecord(folder)
  return record?.database === database && isAlive(record) ? record : undefined
}

function answersSoon(record: ServerRecord): Promise<boolean> {
  return becomesReady({ address: record.address, isAlive: () => isAlive(record), timeoutMs: adoptTimeoutMs })
}

async function serve(options: StartDevServer & Place & { lock: WorkerLock }): Promise<DevServer> {
  const { folder, lock } = options
  try {
    const orphan = await adopt(options)
    const record = orphan ?? (await start(options))
    let stopped: Promise<void> | undefined
    const end = async (graceMs: number) => {
      await endProcess({ identity: record, graceMs })
      removeServerRecord(folder)
      lock.release()
    }
    return {
      ...handle(record),
      origin: orphan === undefined ? 'started' : 'adopted',
      isAbandoned: () => false,
      stop: ({ graceMs = stopGraceMs } = {}) => (stopped ??= end(graceMs)),
    }
  } catch (error) {
    lock.release()
    throw error
  }
}

function handle({ address, uiUrl, pid }: ServerRecord) {
  return { address, uiUrl, pid }
}

/** An orphan that is as asked is used; any other is ended, for its database is needed. */
async function adopt({ folder, database, ports, ui = true }: StartDevServer & Place) {
  const record = noted({ folder, database })
  if (record === undefined) return undefined
  const isAsAsked =
    (record.uiUrl !== undefined) === ui && (ports === undefined || record.address.endsWith(`:${ports.grpc}`))
  if (isAsAsked && (await answersSoon(record))) return record
  await endProcess({ identity: record, graceMs: isAsAsked ? stuckGraceMs : stopGraceMs })
  return undefined
}

async function start({ folder, database, binary, ports, ui = true }: StartDevServer & Place) {
  const logFile = join(folder, 'temporal.log')
  const record = await startProcess({ binary: await binary(), database, logFile, ports, ui })
  writeServerRecord({ folder, record })
  const alive = () => isAlive(record)
  if (await becomesReady({ address: record.address, isAlive: alive, timeoutMs: startTimeoutMs }))
    return record
  const what = alive() ? `did not answer in ${startTimeoutMs / 1000} s` : 'ended at its start'
  await endProcess({ identity: record, graceMs: stopGraceMs })
  throw new DevServerError({ logFile, what })
}
