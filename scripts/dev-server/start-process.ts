import { execFile, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { promisify } from 'node:util'
import { identify } from '../../core/state/process-identity.ts'
import { childEnvironment } from '../../worker/child-environment.ts'
import { isOurVersion } from './find-binary.ts'
import { searchAttributes } from './readiness.ts'
import type { ServerRecord } from './server-record.ts'

export interface Ports {
  grpc: number
  ui: number
}

/** No dev server could be started, or it ended and could not be restarted. */
export class DevServerError extends Error {
  override name = 'DevServerError' as const
  constructor({ logFile, what, cause }: { logFile: string; what: string; cause?: unknown }) {
    super(`The Temporal dev server ${what}. Its log: ${logFile}`, { cause })
  }
}

/**
 * Settings that make ten sequential activities take 0.2 s instead of 1.05 s: by default the server polls only 20
 * times a second for new tasks and waits for the disk at each step. A write-ahead log loses nothing if the server
 * is killed; a power cut can lose its last steps, which are then repeated.
 */
const quick = [
  '--dynamic-config-value=history.transferProcessorMaxPollRPS=1000',
  '--sqlite-pragma=journal_mode=WAL',
  '--sqlite-pragma=synchronous=NORMAL',
]

export interface StartProcess {
  binary: string
  database: string
  logFile: string
  ports: Ports
  ui: boolean
}

/**
 * Becomes the server and leaves a watcher beside it, which kills it as soon as the pipe to its owner closes:
 * however the owner ends, its server ends with it. A line on the pipe ends the watcher instead.
 */
const endingWithOwner =
  'exec 3<&0 </dev/null; { read -r _ <&3 || kill -KILL $$; } >/dev/null 2>&1 & exec "$@" 3<&-'

export interface ServerProcess {
  record: ServerRecord
  /** Resolves when the process has ended. */
  ended: Promise<void>
}

/**
 * Starts the server and returns its process before it is ready. The process has a session of its own, so that
 * Ctrl-C in the terminal reaches only the command, which still needs the server to end its run. It ends with this
 * process.
 *
 * @throws {DevServerError} the binary cannot be run
 */
export async function startProcess({
  binary,
  database,
  logFile,
  ports: { grpc, ui: uiPort },
  ui,
}: StartProcess): Promise<ServerProcess> {
  const flags = await optionalFlags(binary).catch((cause: unknown) => {
    throw new DevServerError({ logFile, what: `did not start: ${binary} cannot be run`, cause })
  })
  const log = openSync(logFile, 'w')
  const place = ['--ip', '127.0.0.1', '--port', String(grpc), '--db-filename', basename(database)]
  const args = [
    'server',
    'start-dev',
    ...place,
    ...(ui ? ['--ui-port', String(uiPort)] : ['--headless']),
    ...Object.entries(searchAttributes).flatMap(([name, type]) => ['--search-attribute', `${name}=${type}`]),
    ...quick,
    ...flags,
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
  const ended = new Promise<void>((resolve) => {
    child.once('error', () => resolve())
    child.once('exit', () => {
      child.stdin?.end('\n')
      resolve()
    })
  })
  const { pid } = child
  if (pid === undefined) throw new DevServerError({ logFile, what: 'did not start' })
  const record = {
    // One that has ended by now has no start time any more; without one, no process counts as alive.
    ...(identify(pid) ?? { pid, startTime: '' }),
    address: `127.0.0.1:${grpc}`,
    ...(ui ? { uiUrl: `http://127.0.0.1:${uiPort}` } : {}),
    database,
  }
  return { record, ended }
}

const newerFlags = ['--ui-disable-news-fetch']

/** Flags that only newer versions of the CLI support; of ours that is known, and asking takes a tenth of a second. */
async function optionalFlags(binary: string): Promise<string[]> {
  if (isOurVersion(binary)) return newerFlags
  const { stdout } = await promisify(execFile)(binary, ['server', 'start-dev', '--help'], {
    env: childEnvironment(),
  })
  return newerFlags.filter((flag) => stdout.includes(flag))
}
