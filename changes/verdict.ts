import type { RetentionAudit } from './audit-retentions.ts'
import type { ChangeKindName } from './change-kind.ts'
import type { ReportSummary } from './report.ts'

export interface ChangesVerdict {
  verdict: 'proven' | 'unproven'
  /** Why it is not proven; empty where it is. */
  reasons: string[]
  /** What proves it: the audit of the list, the service's own answers, or a look at each. */
  by: 'audit' | 'answer' | 'look'
}

/**
 * Whether a run of changes is proven: nothing is left in doubt or undone, and what is done is shown by the service
 * itself. Rejected changes do not make it unproven: that they were refused is known.
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
  /** Of a recovery: whether the snapshot's list was seen whole. */
  listProven?: boolean
}): ChangesVerdict {
  const reasons = [...unfinished(summary), ...missing(summary), ...doubtful(summary), ...left(summary)]
  if (kind === 'create-retention')
    return verdict('audit', [...reasons, ...(audit?.reasons ?? ['the audit was not made'])])
  if (kind === 'resume-subscription')
    return verdict('look', [...reasons, ...(listProven === true ? [] : ['the list was not seen whole'])])
  return verdict('answer', [
    ...reasons,
    ...count(summary.doneWithoutId, 'done without an id in the service’s answer'),
  ])
}

const verdict = (by: ChangesVerdict['by'], reasons: string[]): ChangesVerdict => ({
  verdict: reasons.length === 0 ? 'proven' : 'unproven',
  reasons,
  by,
})

function unfinished({ counts }: ReportSummary): string[] {
  return [
    ...count(counts.unknown, 'unknown'),
    ...count(counts.parked, 'parked, for a person'),
    ...count(counts.staged, 'staged and not sent'),
    ...count(counts.notTried, 'not tried'),
  ]
}

const missing = ({ outcomes }: ReportSummary) =>
  count(outcomes['missing'] ?? 0, 'of these staged by the run and missing from the ledger (state.db)')

function doubtful({ outcomes }: ReportSummary): string[] {
  return [
    ...count(outcomes['resolved'] ?? 0, 'done by a person’s word'),
    ...count(outcomes['doubled'] ?? 0, 'done more than once'),
    ...count(outcomes['storedOtherwise'] ?? 0, 'stored otherwise than sent'),
    ...count(outcomes['wrongMode'] ?? 0, 'done in the other mode'),
  ]
}

/** What is parked is in doubt, a resume too where no look found it again, and a person who leaves it settles nothing. */
const left = ({ outcomes }: ReportSummary) =>
  count(outcomes['dropped'] ?? 0, 'in doubt, and left by a person')

const count = (number: number, words: string) => (number === 0 ? [] : [`${number} ${words}`])
