import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

const serverRecord = z.object({
  pid: z.number().int().positive(),
  startTime: z.string(),
  address: z.string(),
  uiUrl: z.string().optional(),
  /** Absolute, so that the record of a copied folder does not lead to the server of the original. */
  database: z.string(),
})
/** The server that runs on a data folder's database, as recorded in the folder. */
export type ServerRecord = z.output<typeof serverRecord>

const fileOf = (folder: string) => join(folder, 'server.json')

export function writeServerRecord({ folder, record }: { folder: string; record: ServerRecord }): void {
  const fresh = `${fileOf(folder)}.${process.pid}`
  writeFileSync(fresh, `${JSON.stringify(record)}\n`)
  renameSync(fresh, fileOf(folder))
}

/** Undefined if the record is missing or unreadable. */
export function readServerRecord(folder: string): ServerRecord | undefined {
  try {
    return serverRecord.parse(JSON.parse(readFileSync(fileOf(folder), 'utf8')))
  } catch {
    return undefined
  }
}

export function removeServerRecord(folder: string): void {
  rmSync(fileOf(folder), { force: true })
}
