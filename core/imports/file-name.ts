import { basename, extname } from 'node:path'

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
