import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { UnreadableFileError } from './errors.ts'

const megabyte = 1024 ** 2

interface SizeLimit {
  megabytes: number
  advice: string
}

/** The largest file of each sort that is copied or read: far more than any that a person made. */
export const sizeLimits = {
  /** A kilobyte for each row that a spreadsheet can show. */
  table: { megabytes: 1_024, advice: 'Split it into several files.' },
  /** Held in memory: a hundred bytes for each of its rows. */
  lookup: { megabytes: 10, advice: 'Keep only what the file looks up.' },
  /** Held in memory: hundreds of bytes for each of the columns that a file may have. */
  mapping: { megabytes: 1, advice: 'Map only columns that the file has.' },
} as const satisfies Record<string, SizeLimit>

/**
 * Refuses a file before it is copied or read if it is larger than its sort may be.
 * @throws {UnreadableFileError}
 */
export async function refuseLarge(path: string, sort: keyof typeof sizeLimits = 'table'): Promise<void> {
  const { megabytes, advice } = sizeLimits[sort]
  const { size } = await stat(path)
  if (size <= megabytes * megabyte) return
  const shown = (value: number, digits = 0) =>
    value < 1_024 ? `${value.toFixed(digits)} MB` : `${(value / 1_024).toFixed(digits)} GB`
  throw new UnreadableFileError(
    `${basename(path)} has ${shown(size / megabyte, 1)}, and at most ${shown(megabytes)} is read. ${advice}`,
  )
}
