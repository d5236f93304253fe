import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { stat } from 'node:fs/promises'
import { createKeyedMutex } from '../../../core/storage/keyed-mutex.ts'
import type { SeenRow } from './contract.ts'
import { toSeen } from './warehouse-rows.ts'

/** One for all questions: starting an instance takes 20 ms of the processor, attaching a file to one takes 2. */
let instance: Promise<DuckDBInstance> | undefined
const oneAtATime = createKeyedMutex()

/**
 * Asks a DuckDB file, or changes it, as a person with an instance of their own; undefined where there is no such
 * file or table. Nothing may be left open: a second instance in one process would get the file all the same.
 */
export async function askDuckDb(path: string, sql: string): Promise<SeenRow[] | undefined> {
  const inMemory = path === ':memory:'
  const isThere = inMemory || (await stat(path).catch(() => undefined)) !== undefined
  if (!isThere && sql.startsWith('select')) return undefined
  return oneAtATime.runExclusive('', async () => {
    instance ??= DuckDBInstance.create(':memory:')
    const connection = await (await instance).connect()
    try {
      return inMemory ? await read(connection, sql) : await readAttached(connection, path, sql)
    } catch (error) {
      if (/Table with name .* does not exist|No files found/.test((error as Error).message)) return undefined
      throw error
    } finally {
      connection.closeSync()
    }
  })
}

async function readAttached(connection: DuckDBConnection, path: string, sql: string): Promise<SeenRow[]> {
  await connection.run(`attach '${path.replaceAll("'", "''")}' as asked; use asked`)
  try {
    return await read(connection, sql)
  } finally {
    await connection.run('use memory; detach asked')
  }
}

async function read(connection: DuckDBConnection, sql: string): Promise<SeenRow[]> {
  const reader = await connection.runAndReadAll(sql)
  return reader.getRowObjectsJson().map(toSeen)
}
