import type { FileStore, StoredFile } from '../storage/file-store.ts'
import { uploadOf } from './plan.ts'

/** The files that a command has handed over for an import. */
export interface Upload {
  /** Relative to the data folder or the prefix of the bucket. */
  path: string
  /** When its last file was written (ms since 1970). */
  at: number
  files: readonly StoredFile[]
}

/** Finds the uploads of a store whose files were all written before `before` (ms since 1970). */
export async function findOldUploads(store: FileStore, { before }: { before: number }): Promise<Upload[]> {
  const uploads = Map.groupBy(await store.list('imports'), ({ path }) => uploadOf(path))
  return [...uploads].flatMap(([path, files]) => {
    const at = Math.max(...files.map(({ changedAt }) => changedAt))
    return path === undefined || at >= before ? [] : [{ path, at, files }]
  })
}
