import { spawn } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { acquireLock, FolderLockedError } from '../../core/state/data-folder-lock.ts'
import { endProcess, identify, isAlive } from '../../core/state/process-identity.ts'
import { childEnvironment } from '../../worker/child-environment.ts'
import { freePorts, isFree } from '../../worker/free-ports.ts'
import { isOurVersion } from './find-binary.ts'
import { becomesReady, isOpen, searchAttributes } from './readiness.ts'
import {
  findServer,
  removeServerRecord,
  type ServerRecord,
  serverPaths,
  writeServerRecord,
} from './server-record.ts'

/** In ms. A server takes 0.4 to 1.2 s to start on two idle cores; a minute allows for a busy machine. */
const startTimeoutMs = 60_000
/** The most starts: another process may take a port between its choice and its use, also one that the server chooses. */
const mostStarts = 5
/** In ms: how soon this process learns that the server has ended, once a connection to it has failed. */
const noticeMs = 500

export interface Ports {
  grpc: number
  ui: number
}

export interface StartDevServer {
  /** Contains the server's database, `temporal.db`, and its lock, record and log in `dev-server/`. */
  dataDir: string
  /** Provides the CLI. */
  binary: () => Promise<string>
  /** The port of the UI, if it is free. */
  uiPort?: number
  /** Finds ports. Default: free ones. */
  choosePorts?: () => Promise<Ports>
  /** Called when the server's process runs, a second before it is ready. */
  onSpawned?: () => void
}

export interface DevServer {
  /** host:port of gRPC. */
  address: string
  uiUrl: string
  pid: number
  /** Aborted with a DevServerError when the server has ended by itself. */
  lost: AbortSignal
  /**
   * Does work that needs the server.
   *
   * @throws {DevServerError} the server ended meanwhile, whatever error that caused in the work
   */
  during<T>(work: () => Promise<T>): Promise<T>
  /** Kills the server, which has written every step to its log, so that nothing is lost, and waits until it is gone. */
  stop(): Promise<void>
}

/** No dev server could be started, or it ended. */
export class DevServerError extends Error {
  override name = 'DevServerError' as const
  constructor({ logFile, what, cause }: { logFile: string; what: string; cause?: unknown }) {
    super(`The Temporal dev server ${what}. Its log: ${logFile}`, { cause })
  }
}

/** Another command runs the dev server of this data folder. */
export class ServerInUseError extends Error {
  override name = 'ServerInUseError' as const
  readonly exitCode = 2
  readonly hint = 'Commands without --local use its server; or wait until it has ended.'
  constructor({ dataDir, cause }: { dataDir: string; cause: FolderLockedError }) {
    const { holder } = cause
    const owner = holder === undefined ? 'Another command' : `Another command (pid ${holder.pid})`
    super(`${owner} runs the Temporal dev server of the data folder ${dataDir}.`, { cause })
  }
}

/**
 * Starts a Temporal dev server on the data folder's own database. Two servers would damage the database, so this
 * process holds a lock until the server has stopped. The server ends with this process, however that ends.
 *
 * @throws {ServerInUseError} another process holds the lock
 * @throws {DevServerError} the server could not be started
 */
export async function startDevServer(options: StartDevServer): Promise<DevServer> {
  const { dataDir } = options
  const { folder, logFile } = serverPaths(dataDir)
  mkdirSync(folder, { recursive: true })
  const lock = lockOf(dataDir)
  try {
    // The server of an owner that was killed ends in a moment.
    const orphan = findServer(dataDir)
    if (orphan !== undefined) await endProcess({ identity: orphan, graceMs: 0 })
    const { record, ended } = await startOnFreePorts(options)
    const lost = new AbortController()
    let isStopping = false
    const losing = ended.then(() => {
      if (!isStopping) lost.abort(new DevServerError({ logFile, what: 'ended while it was in use' }))
    })
    let stopped: Promise<void> | undefined
    const stop = async () => {
      isStopping = true
      await endProcess({ identity: record, graceMs: 0 })
      await ended
      removeServerRecord(dataDir)
      lock.release()
    }
    return {
      address: record.address,
      uiUrl: record.uiUrl,
      pid: record.pid,
      lost: lost.signal,
      async during(work) {
        const failing = losing.then((): never => {
          throw lost.signal.reason
        })
        try {
          return await Promise.race([work(), failing])
        } catch (error) {
          // A failed connection may be noticed before the end of the process.
          await Promise.race([losing, sleep(noticeMs)])
          lost.signal.throwIfAborted()
          throw error
        }
      },
      stop: () => (stopped ??= stop()),
    }
  } catch (error) {
    removeServerRecord(dataDir)
    lock.release()
    throw error
  }
}

function lockOf(dataDir: string) {
  try {
    return acquireLock({ folder: serverPaths(dataDir).folder, role: 'command with the dev server' })
  } catch (cause) {
    if (!(cause instanceof FolderLockedError)) throw cause
    throw new ServerInUseError({ dataDir, cause })
  }
}

/** A start on other ports may succeed. */
class StartAgainError extends DevServerError {}

async function startOnFreePorts(options: StartDevServer): Promise<ServerProcess> {
  const { uiPort, choosePorts = () => findPorts(uiPort) } = options
  const binary = await options.binary()
  for (let starts = 1; ; starts += 1) {
    try {
      return await startOnce({ ...options, binary, ports: await choosePorts() })
    } catch (error) {
      if (!(error instanceof StartAgainError) || starts === mostStarts) throw error
    }
  }
}

async function findPorts(uiPort: number | undefined): Promise<Ports> {
  const [grpc = 0, ui = 0] = await freePorts(2)
  return { grpc, ui: uiPort !== undefined && (await isFree(uiPort)) ? uiPort : ui }
}

/** Starts the server and waits until it is ready. */
async function startOnce(
  options: Omit<StartDevServer, 'binary'> & { binary: string; ports: Ports },
): Promise<ServerProcess> {
  const { dataDir, ports, onSpawned } = options
  const { database, logFile } = serverPaths(dataDir)
  const portTaken = () => {
    const what = `did not start: another program uses its port ${ports.grpc} or ${ports.ui}`
    return new StartAgainError({ logFile, what })
  }
  // Checked first: another server on this port would answer instead of this one.
  if (await isOpen(`127.0.0.1:${ports.grpc}`)) throw portTaken()
  removeIncomplete(database)
  const server = spawnServer(options)
  const { record } = server
  writeServerRecord(dataDir, record)
  onSpawned?.()
  const { address } = record
  if (await becomesReady({ address, isAlive: () => isAlive(record), timeoutMs: startTimeoutMs }))
    return server
  const endedItself = !isAlive(record)
  await endProcess({ identity: record, graceMs: 0 })
  const { signal } = await server.ended
  if (!endedItself)
    throw new DevServerError({ logFile, what: `did not answer in ${startTimeoutMs / 1000} s` })
  const log = readFileSync(logFile, 'utf8')
  if (/address already in use/i.test(log)) throw portTaken()
  const why = whyEnded({ log, database })
  if (why !== undefined) throw new DevServerError({ logFile, what: `ended at its start: ${why}` })
  const last = log.trim().split('\n').at(-1)?.slice(0, 300)
  const said = last ? `the last line of its log is: ${last}` : 'it wrote nothing'
  // One that finds its HTTP port taken, which it chose itself, crashes without a word about a port. One that was killed is not
  // started again.
  const what = `ended at its start for no reason that is known here; ${said}`
  throw signal === null ? new StartAgainError({ logFile, what }) : new DevServerError({ logFile, what })
}

/**
 * The server makes the tables of a new database one by one, then its namespaces, and never completes a database whose file
 * exists: one without the namespace of our runs, whose first server was killed, is removed. Call it while no server runs.
 */
function removeIncomplete(file: string): void {
  if (!existsSync(file)) return
  try {
    using database = new DatabaseSync(file, { readOnly: true })
    if (database.prepare("select 1 from namespaces where name = 'default'").get() !== undefined) return
  } catch (error) {
    // What cannot be read is left for the server to explain.
    if (!/no such table/.test(String(error))) return
  }
  for (const end of ['', '-wal', '-shm', '-journal']) rmSync(`${file}${end}`, { force: true })
}

/** Explains known log lines of the server, which are written for developers of Temporal. */
function whyEnded({ log, database }: { log: string; database: string }): string | undefined {
  if (/: exec: /.test(log)) return 'its program cannot be run'
  if (/not a database|malformed/i.test(log))
    return `its database ${database} is damaged. Move that file aside and start again; unfinished runs are then started again by their own commands, and what they sent is still recorded`
  if (/no space left|disk is full/i.test(log)) return `no space is left for its database ${database}`
  if (/readonly|read-only|permission denied|unable to open database/i.test(log))
    return `it may not write its database ${database}`
  return undefined
}

/**
 * Settings that make ten sequential activities take 0.2 s instead of 1.05 s: by default the server polls only 20
 * times a second for new tasks and waits for the disk at each step. A write-ahead log loses nothing if the server
 * is killed; a power cut can lose its last steps, which are then repeated. The four partitions that each task queue has by
 * default are for several servers, and cost this one an eighth of its CPU.
 */
const quick = [
  ...['Read', 'Write'].map((of) => `--dynamic-config-value=matching.numTaskqueue${of}Partitions=1`),
  '--dynamic-config-value=history.transferProcessorMaxPollRPS=1000',
  '--sqlite-pragma=journal_mode=WAL',
  '--sqlite-pragma=synchronous=NORMAL',
]

/**
 * Becomes the server and leaves a watcher beside it, which kills it as soon as the pipe to its owner closes:
 * however the owner ends, its server ends with it. A line on the pipe ends the watcher instead.
 */
const endingWithOwner =
  'exec 3<&0 </dev/null; { read -r _ <&3 || kill -KILL $$; } >/dev/null 2>&1 & exec "$@" 3<&-'

interface ServerProcess {
  record: ServerRecord
  /** Resolves when the process has ended, with the signal that ended it. */
  ended: Promise<{ signal: NodeJS.Signals | null }>
}

/**
 * Starts the server's process. It has a session of its own, so that Ctrl-C in the terminal reaches only the command,
 * which still needs the server to end its run. It ends with this process.
 */
export function spawnServer(
  options: Pick<StartDevServer, 'dataDir'> & { binary: string; ports: Ports },
): ServerProcess {
  const { dataDir, binary, ports } = options
  const { database, logFile } = serverPaths(dataDir)
  const log = openSync(logFile, 'w')
  const places = ['--ip', '127.0.0.1', '--port', String(ports.grpc), '--ui-port', String(ports.ui)]
  const args = [
    'server',
    'start-dev',
    '--db-filename',
    basename(database),
    ...places,
    ...Object.entries(searchAttributes).flatMap(([name, type]) => ['--search-attribute', `${name}=${type}`]),
    ...quick,
    // Only newer versions know it.
    ...(isOurVersion(binary) ? ['--ui-disable-news-fetch'] : []),
  ]
  const child = spawn('/bin/sh', ['-c', endingWithOwner, 'sh', resolve(binary), ...args], {
    // The server makes an address of its file's path, in which `#`, `?` and `%41` would mean another file.
    cwd: dirname(database),
    detached: true,
    stdio: ['pipe', log, log],
    env: childEnvironment(),
  })
  closeSync(log)
  // Writing fails if the watcher was killed too, because nothing reads the pipe.
  child.stdin?.on('error', () => undefined)
  const ended = new Promise<{ signal: NodeJS.Signals | null }>((done) => {
    child.once('error', () => done({ signal: null }))
    child.once('exit', (_, signal) => {
      child.stdin?.end('\n')
      done({ signal })
    })
  })
  const { pid } = child
  if (pid === undefined) throw new DevServerError({ logFile, what: 'did not start' })
  const record = {
    // One that has ended by now has no start time any more; without one, no process counts as alive.
    ...(identify(pid) ?? { pid, startTime: '' }),
    address: `127.0.0.1:${ports.grpc}`,
    uiUrl: `http://127.0.0.1:${ports.ui}`,
    database,
  }
  return { record, ended }
}
