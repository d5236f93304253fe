import { join } from 'node:path'
import { parseBody } from '../changes/body.ts'
import { sentenceFor } from '../changes/outcomes.ts'
import type { ReportSummary } from '../changes/report.ts'
import { resumeSubscription } from '../changes/kinds/resume-subscription.ts'
import { verdictOf } from '../changes/verdict.ts'
import { explain } from '../changes/view.ts'
import { type Reported, type Reporting, writeChangesReport } from '../changes/write-report.ts'
import type { EndedNote } from '../runs/run-notes.ts'
import { canaryFailed, counted, outcomeLabel, type ReportCounts, sumOf } from '../runs/view/counts.ts'
import type { LedgerRow } from '../state/ledger/row.ts'
import type { Candidate } from './candidates.ts'
import { outcomeOf, writeRecoveryCsv } from './csv.ts'
import { type RecoveryPlan, recoveryFiles } from './input.ts'
import type { RecoveryNotes, SnapshotNote } from './open.ts'
import { addListValue, noListValues } from './list-value.ts'
import { becauseOf } from './reasons.ts'
import { endOf, isReportedOnly } from './refusal.ts'
import {
  type FullReport,
  type NamedRow,
  type RecoveryReport,
  recoveryNextSteps,
  toRecoveryView,
} from './view.ts'

/** Writes the report of a recovery, with recovery.csv; see `writeChangesReport`. */
export async function writeRecoveryReport(
  options: Reporting<RecoveryPlan>,
): Promise<Reported<RecoveryReport, FullReport>> {
  const { plan } = options
  const notes = await options.notes.read<RecoveryNotes>(plan.run)
  const { snapshot, decisions, asked } = notes
  const tally = createTally(plan, notes)
  return await writeChangesReport<NamedRow, RecoveryReport, FullReport>(options, {
    staged: snapshot?.staged ?? 0,
    // That of a dry run was written with its snapshot.
    sheets: snapshot === undefined ? {} : { results: recoveryFiles.results },
    writeSheets: (rows, folder) => writeRecoveryCsv({ rows, to: join(folder, recoveryFiles.results) }),
    take: (row, place) => tally.take(row, place),
    invalid: [],
    describe(summary, rows, common) {
      const result = { ...toReport(plan, notes, tally, summary), rows, files: common.files }
      return { result, report: { ...result, ...common, decisions, coolingDown: tally.coolingDown } }
    },
    nextOf: (report) => recoveryNextSteps(report, asked?.input ?? {}),
    saysWhy: ({ failedCanaries }) => failedCanaries.length > 0,
    withoutContents: (report) => ({ ...report, coolingDown: [] }),
    toView: toRecoveryView,
  })
}

type Tally = ReturnType<typeof createTally>

/** Enough of those in their cool-down; recovery.csv has all of them. */
const mostCooling = 5

/** What the report has of the rows, collected while recovery.csv is written. */
function createTally(plan: RecoveryPlan, { ended }: Partial<RecoveryNotes>) {
  const tally = {
    coolingDown: [] as FullReport['coolingDown'],
    byReason: {} as RecoveryReport['byReason'],
    recoveredValue: noListValues(),
    /** By reason: those not tried because its canary failed. */
    skipped: new Map<string, number>(),
    reported: 0,
    inDoubt: 0,
    take(row: LedgerRow, place: keyof ReportCounts) {
      const { coolingDown, byReason, recoveredValue, skipped } = tally
      const isOnlyReported = isReportedOnly(row, plan)
      if (isOnlyReported) tally.reported += 1
      if (place === 'parked' && resumeSubscription.isInDoubt?.(row) === true) tally.inDoubt += 1
      const { key: subscription, breakerKey: reason } = row
      if (row.outcome === 'coolingDown' && coolingDown.length < mostCooling)
        coolingDown.push({ subscription, message: explain(row) ?? '' })
      if (row.error === canaryFailed) skipped.set(reason, (skipped.get(reason) ?? 0) + 1)
      const outcome = ended !== undefined || place !== 'staged' ? outcomeOf(row) : 'notResumedYet'
      const outcomes = (byReason[reason] ??= {})
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
      if (outcome === 'recovered')
        addListValue(recoveredValue, reason, (parseBody(row) as Candidate).snapshot.value)
      const needsAttention =
        place === 'rejected' || place === 'unknown' || (place === 'parked' && !isOnlyReported)
      return {
        named: { row: row.row, subscription },
        outward: needsAttention ? (sentenceFor(row.outcome) ?? '') : undefined,
      }
    },
  }
  return tally
}

function toReport(
  plan: RecoveryPlan,
  { snapshot, ended, asked }: Partial<RecoveryNotes>,
  tally: Tally,
  summary: ReportSummary,
): Omit<RecoveryReport, 'files' | 'rows'> {
  const { counts, outcomes } = summary
  const { byReason, recoveredValue, reported, skipped } = tally
  const failedCanaries = Array.from(skipped, ([reason, notTried]) => ({ reason, notTried }))
  const proof = verdictOf({
    kind: 'resume-subscription',
    summary: { ...summary, counts: { ...counts, parked: counts.parked - reported } },
    ...(snapshot && { listProven: snapshot.proven }),
  })
  // A dry run changes nothing: only the list can be incomplete.
  const reasons = [...(plan.dryRun ? [] : proof.reasons), ...(snapshot?.reasons ?? [])]
  const parked = counts.parked - reported
  const resultsSeen = tally.inDoubt === 0 && parked > 0 && reasons.length === 1
  const continueWith = toContinueWith(plan, asked?.input ?? {}, snapshot, counts, failedCanaries)
  return {
    run: plan.run,
    summary: toSummary(plan, summary, {
      reasons: resultsSeen ? [] : reasons,
      parked,
      reported,
      snapshot,
      ended,
    }),
    resultsSeen,
    verdict: plan.dryRun ? 'dryRun' : proof.verdict,
    reasons,
    inDoubt: !plan.dryRun && proof.inDoubt,
    by: proof.by,
    ...(ended && { ended }),
    counts,
    outcomes,
    reported,
    byReason,
    recoveredValue,
    failedCanaries,
    needsPerson: toNeeds(plan, byReason, snapshot, ended !== undefined),
    snapshot: snapshot ?? null,
    preview: snapshot?.preview ?? null,
    ...(continueWith && { continueWith }),
    audit: null,
  }
}

/** The report of a recovery in one sentence: `15 of 15 recovered; proven; 305 others need a person`. */
function toSummary(
  plan: RecoveryPlan,
  { counts, outcomes }: ReportSummary,
  of: {
    snapshot: SnapshotNote | undefined
    ended: EndedNote | undefined
    reasons: readonly string[]
    parked: number
    reported: number
  },
): string {
  const { reasons, parked, reported, snapshot, ended } = of
  const why = ended?.why === undefined ? [] : [ended.why]
  if (snapshot === undefined) return ['nothing was resumed: the list was not read', ...why].join('; ')
  if (plan.dryRun) {
    const { notResumed, toResume } = snapshot.preview
    const others = Object.entries(notResumed).map(([outcome, number]) => `${number} ${wouldBe(outcome)}`)
    return [`dry run: ${toResume} would be resumed`, ...others, ...reasons.slice(0, 1)].join('; ')
  }
  const passed = counts.notTried === 0 || ended === undefined ? undefined : endOf(plan, Date.parse(ended.at))
  const { alreadyFine = 0, gone = 0, coolingDown = 0, dropped = 0 } = outcomes
  const toResume = sumOf(counts) - reported - coolingDown
  return [
    toResume === 0 ? 'nothing to resume' : `${counts.done - alreadyFine} of ${toResume} recovered`,
    ...counted(alreadyFine, 'already fine'),
    ...counted(counts.rejected, 'refused'),
    ...counted(gone, 'cancelled or finalized meanwhile'),
    ...counted(dropped, 'dropped by a person'),
    // The reasons already include the counts of parked, unknown and untried rows.
    reasons.length === 0
      ? parked === 0
        ? 'proven'
        : `${parked} ${parked === 1 ? 'needs' : 'need'} a person`
      : `${ended === undefined ? 'not ended' : 'unproven'}: ${reasons.join('; ')}`,
    ...counted(coolingDown, 'resumed recently and left alone'),
    ...counted(reported, reported === 1 ? 'other needs a person' : 'others need a person'),
    ...(passed === undefined ? [] : [passed]),
    ...why,
  ].join('; ')
}

const wouldBe = (outcome: string): string =>
  ({
    needsPerson: 'need a person',
    attemptsUsedUp: 'have used up their attempts',
    coolingDown: 'were resumed recently',
    notTried: 'are beyond maxChanges',
  })[outcome] ?? outcomeLabel(outcome)

const forPerson: Readonly<Record<string, string>> = {
  refused: 'were refused by the service; its messages are in recovery.csv',
  notFound: 'were not found in the list afterwards: look them up in the service',
}

/** While a run is in progress, these are tried again, or looked up. */
const forPersonAtEnd: Readonly<Record<string, string>> = {
  fellBack: 'fell back, and the run ended before they were tried again',
  noEffect: 'showed no effect of the resume, and the run ended before they were tried again',
  stillOpen:
    'may have been resumed before the ledger was restored, and the run ended before they were tried again',
  unknown: 'were resumed and their outcome was not seen: the next recovery looks them up first',
}

function toNeeds(
  { dryRun, attempts }: RecoveryPlan,
  byReason: RecoveryReport['byReason'],
  snapshot: SnapshotNote | undefined,
  isEnded: boolean,
): string[] {
  const totals = new Map<string, number>()
  const needs: Record<string, number> = dryRun ? { ...snapshot?.preview.needsPerson } : {}
  for (const [reason, { needsPerson, ...outcomes }] of Object.entries(byReason)) {
    if (needsPerson !== undefined && !dryRun) needs[reason] = needsPerson
    for (const [outcome, number] of Object.entries(outcomes))
      totals.set(outcome, (totals.get(outcome) ?? 0) + number)
  }
  const count = ([outcome, text]: [string, string]) => counted(totals.get(outcome) ?? 0, text)
  const usedUp = `fell back after every resume and used up their attempts (${attempts} across all runs). Find the cause in the service; only a higher --input attempts=... resumes them again`
  return [
    ...count(['attemptsUsedUp', usedUp]),
    ...Object.entries(needs).map(
      ([reason, number]) => `${number} ${reason || 'without a reason'}: ${becauseOf(reason)}`,
    ),
    ...Object.entries({ ...forPerson, ...(isEnded && forPersonAtEnd) }).flatMap(count),
  ]
}

/**
 * The input for a run that continues this one, if something is left: each run takes its own snapshot, so the same input
 * continues, with more pages if the list was not read completely.
 */
function toContinueWith(
  plan: RecoveryPlan,
  asked: RecoveryNotes['asked']['input'],
  snapshot: SnapshotNote | undefined,
  counts: RecoveryReport['counts'],
  failedCanaries: RecoveryReport['failedCanaries'],
): RecoveryReport['continueWith'] {
  const failed = failedCanaries.map(({ reason }) => reason)
  const reasons = plan.reasons.filter((reason) => !failed.includes(reason))
  if (reasons.length === 0) return undefined
  const input = failed.length === 0 ? asked : { ...asked, reasons }
  if (snapshot?.capped === true) {
    const pages = Math.ceil(((snapshot.count ?? 0) / 100) * 1.5) + 5
    return { ...input, maxPages: Math.max(pages, 2 * plan.maxPages) }
  }
  const beyondCanaries = failedCanaries.reduce((sum, { notTried }) => sum + notTried, 0)
  const isLeft =
    counts.notTried + counts.staged > beyondCanaries || (snapshot?.preview.notResumed['notTried'] ?? 0) > 0
  return isLeft ? input : undefined
}
