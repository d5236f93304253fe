import type { ReadFacts } from '../destinations/manifest/manifest.ts'
import type { IdOutcome } from '../reading/by-id/id-state.ts'
import { type AnyOutcome, type Checkpoint, outcomeOf } from './parts/checkpoint.ts'
import type { ExportPlan } from './plan.ts'

/** Whether a read asked for documents by id, instead of for a list. */
export const isOfIds = (outcome: AnyOutcome): outcome is IdOutcome => 'asked' in outcome

/** What a manifest passes on of the read whose last checkpoint this is. */
export function toFacts(options: {
  plan: ExportPlan
  resource: ExportPlan['resources'][number]
  checkpoint: Checkpoint
}): ReadFacts {
  const { plan, resource, checkpoint } = options
  const { read, savedAt, drift } = checkpoint
  const outcome = outcomeOf(checkpoint)
  // A read that goes on from an earlier run's began when that one did.
  const times = { startedAt: new Date(read.startedAt).toISOString(), finishedAt: savedAt }
  if (isOfIds(outcome)) {
    const { missing: _published, scope, ...facts } = outcome
    return { ...listless, ties: [], ...facts, ...times, scope: [scope], drift }
  }
  const { rejected: _counted, capped: _said, countBefore, countAfter, scope, ties, ...facts } = outcome
  return {
    ...facts,
    ...times,
    ties: ties.map((group) => ({ ...group })),
    scope: [scope],
    countBefore: countBefore ?? null,
    countAfter: countAfter ?? null,
    ...(plan.since[resource] !== undefined && { changedSince: new Date(plan.since[resource]).toISOString() }),
    drift,
  }
}

/** What is said of lists, for a read that has none. */
const listless = {
  completeThrough: null,
  clock: 'local' as const,
  ordering: 'as asked',
  countBefore: null,
  countAfter: null,
  windows: 0,
  linksRepaired: 0,
  duplicatesDropped: 0,
}
