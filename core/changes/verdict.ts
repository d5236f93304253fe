import type { RetentionAudit } from './audit/retention-tally.ts'
import type { ChangeKindName } from './change-kind.ts'
import { countLabels } from '../runs/view/counts.ts'
import type { ReportSummary } from './report.ts'

export interface ChangesVerdict {
  verdict: 'proven' | 'unproven'
  /** Why the run is not proven; empty if it is. */
  reasons: string[]
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
  /** Of a recovery: whether the snapshot's list was read completely. */
  listProven?: boolean
}): ChangesVerdict {
  const reasons = [...unfinished(summary), ...missing(summary), ...doubtful(summary), ...left(summary)]
  if (kind === 'create-retention')
    return verdict('audit', [...reasons, ...(audit?.reasons ?? ['the audit did not run'])])
  if (kind === 'resume-subscription')
    return verdict('lookup', [
      ...reasons,
      ...(listProven === true ? [] : ['the list was not read completely']),
    ])
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
    ...count(counts.unknown, countLabels.unknown),
    ...count(counts.parked, countLabels.parked),
    ...count(counts.staged, countLabels.staged),
    ...count(counts.notTried, countLabels.notTried),
  ]
}

const missing = ({ outcomes }: ReportSummary) =>
  count(outcomes['missing'] ?? 0, 'of these staged by the run but missing from the ledger (state.db)')

function doubtful({ outcomes }: ReportSummary): string[] {
  return [
    ...count(outcomes['resolved'] ?? 0, 'done according to a person'),
    ...count(outcomes['doubled'] ?? 0, 'done more than once'),
    ...count(outcomes['storedDifferently'] ?? 0, 'stored differently than sent'),
    ...count(outcomes['wrongMode'] ?? 0, 'done in the other mode'),
    ...count(outcomes['doneOtherwise'] ?? 0, 'done by an earlier run with other values than this file has'),
  ]
}

/**
 * Parked changes are in doubt, including resumes that no lookup found again; dropping them resolves nothing. What another
 * run took over, only that run's report can prove.
 */
const left = ({ outcomes }: ReportSummary) => [
  ...count(outcomes['dropped'] ?? 0, 'in doubt and dropped by a person'),
  ...count(outcomes['takenOver'] ?? 0, 'taken over by another run, whose report has their results'),
]

const count = (number: number, label: string) => (number === 0 ? [] : [`${number} ${label}`])
