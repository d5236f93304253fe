import { createHash } from 'node:crypto'

/** Longest name, in bytes: file systems limit names, and added marks and a temporary ending need room. */
const longestName = 200

/**
 * Turns a run's name into a file name. People type workflow ids: a slash must not lead to another folder,
 * and a run called `latest` must not take the link's place. Other names stay unchanged.
 */
export function toFileName(run: string): string {
  const name = encodeURIComponent(run.toWellFormed()).replace(/^\.|^(?=latest(-proven)?$)/, '_$&')
  if (name.length <= longestName) return name
  const sum = createHash('sha256').update(run).digest('hex').slice(0, 16)
  return `${name.slice(0, longestName - 17)}-${sum}`
}
