import { createHash } from 'node:crypto'

/** No file system takes a name of more bytes; the marks and a temporary name's ending need room beside it. */
const longestName = 200

/**
 * A run's name as a file name. People type workflow ids: a slash must not lead anywhere, nor a run called `latest`
 * stand where the link does. Other names stay as they are.
 */
export function toFileName(run: string): string {
  const name = encodeURIComponent(run.toWellFormed()).replace(/^\.|^(?=latest(-proven)?$)/, '_$&')
  if (name.length <= longestName) return name
  const sum = createHash('sha256').update(run).digest('hex').slice(0, 16)
  return `${name.slice(0, longestName - 17)}-${sum}`
}
