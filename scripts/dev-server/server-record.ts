import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { isAlive } from '../../core/state/process-identity.ts'

const serverRecord = z.object({
  pid: z.number().int().positive(),
  startTime: z.string(),
  address: z.string(),
  uiUrl: z.string(),
  /** Absolute, so that the record of a copied folder does not lead to the server of the original. */
  database: z.string(),
})
/** The server that runs on a data folder's database, as recorded in the folder. */
export type ServerRecord = z.output<typeof serverRecord>

/** The paths of a server's files, in the data folder. */
export function serverPaths(dataDir: string) {
  const folder = join(resolve(dataDir), 'dev-server')
  return {
    folder,
    database: join(resolve(dataDir), 'temporal.db'),
    logFile: join(folder, 'temporal.log'),
    recordFile: join(folder, 'server.json'),
  }
}

/** The dev server that runs on the data folder's database; undefined if none does. */
export function findServer(dataDir: string): ServerRecord | undefined {
  const { recordFile, database } = serverPaths(dataDir)
  try {
    const record = serverRecord.parse(JSON.parse(readFileSync(recordFile, 'utf8')))
    // One that was killed could not remove its record.
    return record.database === database && isAlive(record) ? record : undefined
  } catch {
    return undefined
  }
}

export function writeServerRecord(dataDir: string, record: ServerRecord): void {
  const { recordFile } = serverPaths(dataDir)
  const fresh = `${recordFile}.${process.pid}`
  writeFileSync(fresh, `${JSON.stringify(record)}\n`)
  renameSync(fresh, recordFile)
}

export const removeServerRecord = (dataDir: string): void =>
  rmSync(serverPaths(dataDir).recordFile, { force: true })
