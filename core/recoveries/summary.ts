import { outcomeLabel, type ReportCounts } from '../runs/view/counts.ts'
import type { ReportSummary } from '../changes/report.ts'
import type { EndedNote } from '../runs/run-files.ts'
import type { RecoveryPlan } from './plan.ts'
import { endOf } from './refusal.ts'
import type { SnapshotNote } from './run-files.ts'

/** The report of a recovery in one sentence: `188 of 200 recovered; 12 need a person; unproven: 12 parked`. */
export function toSummary({
  plan,
  counts,
  outcomes,
  reasons,
  snapshot,
  ended,
}: {
  plan: RecoveryPlan
  counts: ReportCounts
  outcomes: ReportSummary['outcomes']
  reasons: readonly string[]
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
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0)
  const { alreadyFine = 0, refused = 0, gone = 0, coolingDown = 0 } = outcomes
  return [
    `${counts.done - alreadyFine} of ${all} recovered`,
    ...count(alreadyFine, 'already fine'),
    ...count(counts.parked, counts.parked === 1 ? 'needs a person' : 'need a person'),
    ...count(refused, 'refused'),
    ...count(counts.unknown, 'unknown'),
    ...count(counts.staged, 'not resumed yet'),
    ...count(gone, 'cancelled or finalized meanwhile'),
    ...count(coolingDown, 'resumed recently'),
    ...count(counts.skipped - gone - coolingDown, 'skipped by a person'),
    ...count(counts.notTried, 'not tried'),
    reasons.length === 0 ? 'proven: each resumed one was seen afterwards' : `unproven: ${reasons.join('; ')}`,
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
