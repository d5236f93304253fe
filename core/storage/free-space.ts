import { statfs } from 'node:fs/promises'

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
