import type { ReadFacts } from '../destinations/manifest.ts'
import type { IdOutcome } from '../reading/read-by-id.ts'
import { type AnyOutcome, type Checkpoint, outcomeOf } from './parts/checkpoint.ts'
import type { ExportPlan } from './plan.ts'

/** Whether a read fetched documents by id instead of reading a list. */
export const isOfIds = (outcome: AnyOutcome): outcome is IdOutcome => 'asked' in outcome

/** Builds the facts about a read that its manifest records, from the read's last checkpoint. */
export function toFacts(options: {
  plan: ExportPlan
  resource: ExportPlan['resources'][number]
  checkpoint: Checkpoint
}): ReadFacts {
  const { plan, resource, checkpoint } = options
  const { read, savedAt } = checkpoint
  const outcome = outcomeOf(checkpoint)
  // A read that resumed from an earlier run's parts began when that run's read did.
  const times = { startedAt: new Date(read.startedAt).toISOString(), finishedAt: savedAt }
  if (isOfIds(outcome)) {
    const { missing: _published, scope, ...facts } = outcome
    return { ...listless, ties: [], ...facts, ...times, scope: [scope], ...toDrift(checkpoint) }
  }
  const { rejected: _counted, capped: _said, countBefore, countAfter, scope, ties, ...facts } = outcome
  return {
    ...facts,
    ...times,
    ties: ties.map((group) => ({ ...group })),
    scope: [
      scope,
      ...(plan.whole?.[resource] === undefined
        ? []
        : [`The whole list was read, because ${plan.whole[resource]}.`]),
    ],
    countBefore: countBefore ?? null,
    countAfter: countAfter ?? null,
    ...(plan.since[resource] !== undefined && { changedSince: new Date(plan.since[resource]).toISOString() }),
    ...toDrift(checkpoint),
  }
}

const toDrift = ({ drift }: Checkpoint) => ({
  drift: drift.misfits,
  unknownFields: drift.unknownFields,
  absentFields: Object.entries(drift.absent).flatMap(([path, fields]) =>
    fields.map((field) => `${path}.${field}`),
  ),
})

/** The list-only facts, for a read by id. */
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
