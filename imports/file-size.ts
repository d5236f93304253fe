import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { UnreadableFileError } from './errors.ts'

/** A kilobyte for each row that a spreadsheet can show. */
const mostBytes = 1024 ** 3

/**
 * Refuses a file before it is copied or read if it is larger than any that a person made.
 * @throws {UnreadableFileError}
 */
export async function refuseLarge(path: string): Promise<void> {
  const { size } = await stat(path)
  if (size > mostBytes)
    throw new UnreadableFileError(
      `${basename(path)} has ${(size / mostBytes).toFixed(1)} GB, and at most 1 GB is read. Split it into several files.`,
    )
}
