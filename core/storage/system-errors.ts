import { statfs } from 'node:fs/promises'

/** Whether the system rejected an operation (disk, permission, path), and for this reason if a code is given. */
export const isSystemError = (error: unknown, code?: string): error is NodeJS.ErrnoException =>
  error instanceof Error &&
  'syscall' in error &&
  'code' in error &&
  (code === undefined || error.code === code)

/** Why the system rejects writes there, for people; undefined for errors that may be temporary. */
export const refusalOf = (error: NodeJS.ErrnoException): string | undefined => refusals[error.code ?? '']

const refusals: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota is used up',
  EFBIG: 'the file would be larger than is allowed',
  EROFS: 'the file system is read-only',
  EACCES: 'permission is denied',
  EPERM: 'it is not permitted',
  ENOTDIR: 'a part of the path is not a folder',
  EEXIST: 'something else lies there',
  ENOTEMPTY: 'a folder that is not an export is there',
}

/** Undefined if the file or folder does not exist, also because a part of its path is a file. */
export async function orMissing<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found
  } catch (error) {
    if (isSystemError(error, 'ENOENT') || isSystemError(error, 'ENOTDIR')) return undefined
    throw error
  }
}

/**
 * Below this, in bytes, an export of a few thousand records or a day of Temporal's own database fills the
 * disk.
 */
export const leastFreeBytes = 100e6

/** The bytes this user may still write on the disk of a folder. */
export async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}
