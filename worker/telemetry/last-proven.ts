import { isWhole } from '../../core/exports/proven.ts'
import type { Identity } from '../../core/runs/identity.ts'
import type { PublishedState } from '../../core/state/publications.ts'

export interface LastProven {
  resource: string
  destination: string
  /** When the read began, in ms since 1970. */
  at: number
}

/** The last proven whole read of each resource in each destination. */
export async function findLastProven(options: {
  state: PublishedState
  identity: Identity
}): Promise<LastProven[]> {
  const { state, identity } = options
  const published = await state.publications.all({ testMode: identity.mode === 'test' })
  const latest = new Map<string, LastProven>()
  for (const one of published) {
    if (one.workspace !== identity.workspace || one.verdict !== 'proven' || !isWhole(one)) continue
    const { resource, destination } = one
    latest.set(`${resource} ${destination}`, { resource, destination, at: Date.parse(one.startedAt) })
  }
  return [...latest.values()]
}
