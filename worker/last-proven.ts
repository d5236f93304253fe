import { isWhole, readPublished } from '../destinations/published-notes.ts'
import type { Identity } from '../state/identity.ts'

export interface LastProven {
  resource: string
  destination: string
  /** When the read began, in ms since 1970. */
  at: number
}

/**
 * When the last read began that proved each resource whole in each destination, by the data folder's account of what
 * was published.
 */
export async function findLastProven(options: {
  dataDir: string
  identity: Identity
}): Promise<LastProven[]> {
  const { dataDir, identity } = options
  const published = await readPublished({ dataDir, testMode: identity.mode === 'test' })
  const latest = new Map<string, LastProven>()
  for (const one of published) {
    if (one.workspace !== identity.workspace || one.verdict !== 'proven' || !isWhole(one)) continue
    const { resource, destination } = one
    const key = `${resource} ${destination}`
    const at = Date.parse(one.startedAt)
    if (at > (latest.get(key)?.at ?? 0)) latest.set(key, { resource, destination, at })
  }
  return [...latest.values()]
}
