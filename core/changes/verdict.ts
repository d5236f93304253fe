import type { RetentionAudit } from './audit-retentions.ts'
import type { ChangeKindName } from './change-kind.ts'
import { countLabels, resolvedByPerson } from '../runs/view/counts.ts'
import type { Outcome } from './outcomes.ts'
import type { ReportSummary } from './report.ts'

export interface ChangesVerdict {
  verdict: 'proven' | 'unproven'
  /** Why the run is not proven; empty if it is. */
  reasons: string[]
  /** Whether it is not proven for more than what people have decided. */
  inDoubt: boolean
  /** The evidence: the audit of the list, the service's answers, or a lookup of each change. */
  by: 'audit' | 'answer' | 'lookup'
}

/**
 * Whether a run of changes is proven: nothing is in doubt or left undone, and the service itself shows what is done.
 * Rejected changes do not make a run unproven: they are known to be refused.
 */
export function verdictOf({
  kind,
  summary,
  audit,
  listProven,
}: {
  kind: ChangeKindName
  summary: ReportSummary
  /** Of an import of retentions. */
  audit?: RetentionAudit
  /** Set for a recovery: whether the snapshot's list was read completely. */
  listProven?: boolean
}): ChangesVerdict {
  const { counts, outcomes } = summary
  const doubts = [
    ...unfinished.flatMap((place) => count(counts[place], countLabels[place])),
    ...Object.entries(doubtful).flatMap(([outcome, label]) => count(outcomes[outcome] ?? 0, label)),
  ]
  const verdict = (by: ChangesVerdict['by'], further: readonly string[]): ChangesVerdict => {
    // An answer says nothing of an earlier request for the same change, which a person took for lost.
    const resolved = by === 'answer' ? summary.doneResolved : (outcomes['resolved'] ?? 0)
    // Parked changes are in doubt, also resumes that no lookup found again; dropping them proves nothing.
    const decided = count(resolved + (outcomes['dropped'] ?? 0), resolvedByPerson)
    const reasons = [...doubts, ...decided, ...further]
    const inDoubt = reasons.length > decided.length
    return { verdict: reasons.length === 0 ? 'proven' : 'unproven', reasons, inDoubt, by }
  }
  if (kind === 'create-retention')
    return verdict('audit', [
      ...(audit?.reasons ?? ['the audit did not run']),
      // An answer may come later than its run has ended.
      ...count(Math.max(0, counts.done - (audit?.rows ?? counts.done)), 'done only after the audit'),
    ])
  if (kind === 'resume-subscription')
    return verdict('lookup', listProven === true ? [] : ['the list was not read completely'])
  return verdict('answer', count(summary.doneWithoutId, 'done without an id in the service’s answer'))
}

const unfinished = ['unknown', 'parked', 'staged', 'notTried'] as const

/** What each outcome leaves in doubt. */
const doubtful = {
  missing: 'of these staged by the run but missing from the ledger (state.db)',
  doubled: 'done more than once',
  storedDifferently: 'stored differently than sent',
  wrongMode: 'done in the other mode',
  doneOtherwise: 'done by an earlier run with other values than this file has',
  // Only that run's report can prove them.
  takenOver: 'taken over by another run, whose report has their results',
} as const satisfies Partial<Record<Outcome, string>>

const count = (number: number, label: string) => (number === 0 ? [] : [`${number} ${label}`])
