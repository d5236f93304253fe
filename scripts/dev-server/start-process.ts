import { execFile, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { freePorts } from './free-ports.ts'
import { identify } from '../../core/state/process-identity.ts'
import { searchAttributes } from './readiness.ts'
import type { ServerRecord } from './server-record.ts'

export interface Ports {
  grpc: number
  ui: number
}

/** No dev server came up: with the last words of its log. */
export class DevServerError extends Error {
  override name = 'DevServerError' as const
  constructor({ logFile, what }: { logFile: string; what: string }) {
    super(`The Temporal dev server ${what}: ${lastLine(logFile)}. See ${logFile}.`)
  }
}

function lastLine(file: string): string {
  const words = readFileSync(file, 'utf8').trim().split('\n').at(-1)?.trim().replace(/\.$/, '')
  return words === undefined || words === '' ? 'it said nothing' : words
}

/**
 * Ten activities in turn take 0.2 s with these and 1.05 s without: by default the server looks 20 times a second
 * for what to do next, and waits for the disk at each step. A write-ahead log loses nothing to a killed server;
 * what a power cut can take from its end are steps that are then taken again.
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
  ports?: Ports | undefined
  ui: boolean
}

/**
 * Starts the server and says at once which process it is, before it is ready. It gets a session of its own, so that
 * a Ctrl-C in the terminal reaches only the command, which still needs it to end its run; and a file for its
 * words, because a pipe to a killed command would end it too.
 */
export async function startProcess({
  binary,
  database,
  logFile,
  ports,
  ui,
}: StartProcess): Promise<ServerRecord> {
  const [flags, { grpc, ui: uiPort }] = await Promise.all([optionalFlags(binary), ports ?? twoPorts()])
  const log = openSync(logFile, 'w')
  const place = ['--ip', '127.0.0.1', '--port', String(grpc), '--db-filename', database]
  const args = [
    'server',
    'start-dev',
    ...place,
    ...(ui ? ['--ui-port', String(uiPort)] : ['--headless']),
    ...Object.entries(searchAttributes).flatMap(([name, type]) => ['--search-attribute', `${name}=${type}`]),
    ...quick,
    ...flags,
  ]
  const child = spawn(binary, args, { detached: true, stdio: ['ignore', log, log], env: withoutTemporal() })
  closeSync(log)
  child.unref()
  const identity = child.pid === undefined ? undefined : identify(child.pid)
  if (identity === undefined) throw new DevServerError({ logFile, what: 'did not start' })
  return {
    ...identity,
    address: `127.0.0.1:${grpc}`,
    ...(ui ? { uiUrl: `http://127.0.0.1:${uiPort}` } : {}),
    database,
  }
}

async function twoPorts(): Promise<Ports> {
  const [grpc = 0, ui = 0] = await freePorts(2)
  return { grpc, ui }
}

/** Flags that only newer command lines know. */
async function optionalFlags(binary: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)(binary, ['server', 'start-dev', '--help'])
  return ['--ui-disable-news-fetch'].filter((flag) => stdout.includes(flag))
}

/** The server's own settings are the flags above; the ones a client is given must not reach it. */
function withoutTemporal(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('TEMPORAL_')))
}
