import { outcomeLabel, type ReportCounts, sumOf } from '../runs/view/counts.ts'
import type { ReportSummary } from '../changes/report.ts'
import type { EndedNote } from '../runs/run-files.ts'
import type { RecoveryPlan } from './plan.ts'
import { endOf } from './refusal.ts'
import type { SnapshotNote } from './run-files.ts'

/** The report of a recovery in one sentence: `15 of 15 recovered; proven; 305 others need a person`. */
export function toSummary({
  plan,
  counts,
  outcomes,
  reasons,
  reported,
  snapshot,
  ended,
}: {
  plan: RecoveryPlan
  counts: ReportCounts
  outcomes: ReportSummary['outcomes']
  reasons: readonly string[]
  reported: number
  snapshot: SnapshotNote | undefined
  ended: EndedNote | undefined
}): string {
  const why = ended?.why === undefined ? [] : [ended.why]
  if (snapshot === undefined) return ['nothing was resumed: the list was not read', ...why].join('; ')
  const { preview } = snapshot
  if (plan.dryRun) {
    const others = Object.entries(preview.notResumed).map(
      ([outcome, number]) => `${number} ${labelOf(outcome)}`,
    )
    return [`dry run: ${preview.toResume} would be resumed`, ...others, ...reasons.slice(0, 1)].join('; ')
  }
  const passed = counts.notTried === 0 || ended === undefined ? undefined : endOf(plan, Date.parse(ended.at))
  const { alreadyFine = 0, gone = 0, coolingDown = 0, dropped = 0 } = outcomes
  const toResume = sumOf(counts) - reported - coolingDown
  return [
    toResume === 0 ? 'nothing to resume' : `${counts.done - alreadyFine} of ${toResume} recovered`,
    ...count(alreadyFine, 'already fine'),
    ...count(counts.rejected, 'refused'),
    ...count(gone, 'cancelled or finalized meanwhile'),
    ...count(dropped, 'dropped by a person'),
    // The reasons already include the counts of parked, unknown and untried rows.
    reasons.length === 0
      ? 'proven'
      : `${ended === undefined ? 'not ended' : 'unproven'}: ${reasons.join('; ')}`,
    ...count(coolingDown, 'resumed recently and left alone'),
    ...count(reported, reported === 1 ? 'other needs a person' : 'others need a person'),
    ...(passed === undefined ? [] : [passed]),
    ...why,
  ].join('; ')
}

const count = (number: number, label: string) => (number === 0 ? [] : [`${number} ${label}`])

const labelOf = (outcome: string): string =>
  ({
    needsPerson: 'need a person',
    attemptsUsedUp: 'have used up their attempts',
    coolingDown: 'were resumed recently',
    notTried: 'are beyond maxChanges',
  })[outcome] ?? outcomeLabel(outcome)
