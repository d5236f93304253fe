import { randomUUID } from 'node:crypto'
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import { isSystemError } from '../../storage/system-errors.ts'

/** A data folder or a file store, as a state on PostgreSQL knows it. */
export interface FilesId {
  /** Random; for a folder in `folder.json`: it keeps it when it is moved to another disk or restored. */
  files: string
  /** For people. */
  filesPlace: string
}

const fileOf = (folder: string) => join(folder, 'folder.json')

/** The id of a data folder; undefined if it has none. */
export function readFolderId(folder: string): FilesId | undefined {
  try {
    const note: unknown = JSON.parse(readFileSync(fileOf(folder), 'utf8'))
    if (typeof note !== 'object' || note === null || !('id' in note) || typeof note.id !== 'string')
      return undefined
    return { files: note.id, filesPlace: `${resolve(folder)} on ${hostname()}` }
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined
    throw error
  }
}

/** The id of a data folder, which gets one if it has none. The caller holds its lock. */
export function takeFolderId(folder: string): FilesId {
  const known = readFolderId(folder)
  if (known !== undefined) return known
  const id = randomUUID()
  const fresh = `${fileOf(folder)}.${id}`
  try {
    writeFileSync(fresh, `${JSON.stringify({ id })}\n`, { flush: true })
    linkSync(fresh, fileOf(folder))
  } catch (error) {
    // Another process was faster.
    if (!isSystemError(error, 'EEXIST')) throw error
  } finally {
    rmSync(fresh, { force: true })
  }
  return takeFolderId(folder)
}
