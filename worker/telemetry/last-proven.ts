import { isWhole, readPublished } from '../../core/exports/publication-log.ts'
import type { Publications } from '../../core/state/publications.ts'
import type { Identity } from '../../core/runs/identity.ts'

export interface LastProven {
  resource: string
  destination: string
  /** When the read began, in ms since 1970. */
  at: number
}

/**
 * The last proven whole read of each resource in each destination, from the publication log.
 */
export async function findLastProven(options: {
  dataDir: string
  publications: Publications | undefined
  identity: Identity
}): Promise<LastProven[]> {
  const { identity } = options
  const published = await readPublished({ ...options, testMode: identity.mode === 'test' })
  const latest = new Map<string, LastProven>()
  for (const note of published) {
    if (note.workspace !== identity.workspace || note.verdict !== 'proven' || !isWhole(note)) continue
    const { resource, destination } = note
    const key = `${resource} ${destination}`
    const at = Date.parse(note.startedAt)
    if (at > (latest.get(key)?.at ?? 0)) latest.set(key, { resource, destination, at })
  }
  return [...latest.values()]
}
