import { DuckDBInstance } from '@duckdb/node-api'
import { stat } from 'node:fs/promises'
import type { SeenRow } from './contract.ts'
import { toSeen } from './warehouse-rows.ts'

/**
 * Asks a DuckDB file, or changes it, as a person with an instance of their own; undefined where there is no such
 * file or table. Nothing may be left open: a second instance in one process would get the file all the same.
 */
export async function askDuckDb(path: string, sql: string): Promise<SeenRow[] | undefined> {
  const isThere = path === ':memory:' || (await stat(path).catch(() => undefined)) !== undefined
  if (!isThere && sql.startsWith('select')) return undefined
  const instance = await DuckDBInstance.create(path)
  const connection = await instance.connect()
  try {
    const reader = await connection.runAndReadAll(sql)
    return reader.getRowObjectsJson().map(toSeen)
  } catch (error) {
    if (/Table with name .* does not exist|No files found/.test((error as Error).message)) return undefined
    throw error
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}
