import { stat } from 'node:fs/promises'
import { basename, extname } from 'node:path'
import { InvalidFile } from './errors.ts'

/** The suffix of a workbook's rows, which an import keeps as CSV. */
export const workbookRows = '.rows.csv'

/** The file name as its owner knows it. */
export const shownName = (path: string): string => basename(path, workbookRows)

/** The most bytes that a name may have, less what the connector adds to it. */
const longestName = 255 - 24

/** The name of a file's copy; a long one is cut before its extension. */
export function copyName(path: string): string {
  const name = basename(path)
  if (Buffer.byteLength(name) <= longestName) return name
  const end = `…${extname(name).slice(0, 16)}`
  let start = name.slice(0, longestName)
  while (Buffer.byteLength(start + end) > longestName) start = Array.from(start).slice(0, -1).join('')
  return start + end
}

const megabyte = 1024 ** 2

/** The largest file of each sort that is copied or read: far larger than any file made by hand. */
export const sizeLimits = {
  /** A kilobyte for each row that a spreadsheet can show. */
  table: { megabytes: 1_024, advice: 'Split it into several files.' },
  /** Held in memory: a hundred bytes for each of its rows. */
  lookup: { megabytes: 10, advice: 'Keep only the rows that the file looks up.' },
  /** Held in memory: hundreds of bytes for each column that a file may have. */
  mapping: { megabytes: 1, advice: 'Map only columns that the file has.' },
} as const

/**
 * Rejects a file that exceeds the limit of its sort, before it is copied or read.
 * @throws {InvalidFile}
 */
export async function refuseLarge(path: string, sort: keyof typeof sizeLimits = 'table'): Promise<void> {
  const { megabytes, advice } = sizeLimits[sort]
  const { size } = await stat(path)
  if (size <= megabytes * megabyte) return
  const shown = (value: number, digits = 0) =>
    value < 1_024 ? `${value.toFixed(digits)} MB` : `${(value / 1_024).toFixed(digits)} GB`
  throw new InvalidFile(
    `${shownName(path)} is ${shown(size / megabyte, 1)}; the limit is ${shown(megabytes)}. ${advice}`,
  )
}
