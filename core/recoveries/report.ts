import { join } from 'node:path'
import { parseBody } from '../changes/body.ts'
import { sentenceFor } from '../changes/outcomes.ts'
import { type ReportSummary, type RowReason, createRowTally, placeOf, summarize } from '../changes/report.ts'
import { resumeSubscription } from '../changes/kinds/resume-subscription.ts'
import { verdictOf } from '../changes/verdict.ts'
import { type Closing, explain, writeReport } from '../changes/view.ts'
import type { EndedNote, RunEnd } from '../runs/run-notes.ts'
import { canaryFailed, countLabels, outcomeLabel, places, sumOf } from '../runs/view/counts.ts'
import type { RunNotes } from '../runs/run-notes.ts'
import { toFetch, type View } from '../runs/view/view.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { Candidate } from './candidates.ts'
import { type RecoveryRow, outcomeOf, toRecoveryRow, writeRecoveryCsv } from './csv.ts'
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
import { closeRemaining } from '../changes/close.ts'
import type { SharedFolder } from '../storage/cached.ts'

/** Writes report.json, report.html and recovery.csv into the run's folder, from the ledger and the run's notes. */
export async function writeRecoveryReport(options: {
  ledger: Ledger
  plan: RecoveryPlan
  dataDir: string
  notes: RunNotes
  /** Where several workers share the files, people find them on another machine: paths are relative to its data folder. */
  closing?: Closing
}): Promise<{
  result: RecoveryReport
  report: FullReport
  view: View
  /** The view for Temporal: without subscriptions and what the service said of them. */
  outward: View
}> {
  const { ledger, plan, dataDir, closing } = options
  const isShared = closing?.shared.isShared === true
  const { run, startedAt, identity } = plan
  const folder = join(dataDir, plan.folder)
  const shownFolder = join(isShared ? '' : dataDir, plan.folder)
  const notes = await options.notes.read<RecoveryNotes>(run)
  const { snapshot, decisions } = notes
  const tally = createTally(plan, notes)
  const named = [...(snapshot === undefined ? [] : ['results' as const]), 'report' as const]
  const paths = named.map((name) => [name, join(shownFolder, recoveryFiles[name])])
  // A dry run has no rows in the ledger: its snapshot has written them.
  const sheets = snapshot === undefined || plan.dryRun ? [] : (['results'] as const)
  async function* readRows(): AsyncGenerator<RecoveryRow> {
    for await (const row of ledger.rows({ run })) {
      tally.add(row)
      yield toRecoveryRow(row)
    }
  }
  let written: { result: RecoveryReport; report: FullReport } | undefined
  await writeReport({
    folder,
    closing,
    sheets: sheets.map((name) => recoveryFiles[name]),
    async write(fresh) {
      const rows = readRows()
      if (sheets.length === 0) for await (const _ of rows);
      else await writeRecoveryCsv({ rows, to: join(fresh, recoveryFiles.results) })
      const result: RecoveryReport = {
        ...toReport(plan, notes, tally, await summarize({ ledger, run, staged: snapshot?.staged ?? 0 })),
        files: Object.fromEntries(paths) as RecoveryReport['files'],
        rows: tally.rows,
      }
      const report: FullReport = {
        ...result,
        startedAt,
        identity,
        next: [...(isShared ? [toFetch(run)] : []), ...recoveryNextSteps(result, notes.asked?.input ?? {})],
        decisions,
        first: tally.first(({ message }) => message),
        coolingDown: tally.coolingDown,
        folder: shownFolder,
      }
      written = { result, report }
      // Where a canary failed, nobody should have to look for what the service said.
      const first = report.failedCanaries.length > 0 ? report.first : tally.first((reason) => reason.outward)
      return { report: { ...report, first }, view: toRecoveryView({ ...report, first }) }
    },
  })
  const { result, report } = written!
  const outward = toRecoveryView({ ...report, first: [], coolingDown: [] })
  return { result, report, view: toRecoveryView(report), outward }
}

type Row = Parameters<typeof toRecoveryRow>[0]
type Tally = ReturnType<typeof createTally>

/** Enough of those in their cool-down; recovery.csv has all of them. */
const mostCooling = 5

/** What the report has of the rows, collected while recovery.csv is written. */
function createTally(plan: RecoveryPlan, { ended }: Partial<RecoveryNotes>) {
  const named = createRowTally<NamedRow>()
  const coolingDown: FullReport['coolingDown'] = []
  const byReason: RecoveryReport['byReason'] = {}
  const recoveredValue = noListValues()
  const skipped = new Map<string, number>()
  let reported = 0
  let inDoubt = 0
  return {
    rows: named.rows,
    coolingDown,
    byReason,
    recoveredValue,
    reported: () => reported,
    inDoubt: () => inDoubt,
    failedCanaries: () => Array.from(skipped, ([reason, notTried]) => ({ reason, notTried })),
    first: (messageOf: (reason: RowReason) => string) =>
      places.flatMap((state) =>
        (named.first[state] ?? []).map(({ named: row, ...reason }) => ({
          ...row,
          state,
          message: messageOf(reason),
        })),
      ),
    add(row: Row): void {
      const isOnlyReported = isReportedOnly(row, plan)
      if (isOnlyReported) reported += 1
      const place = placeOf(row)
      if (place === 'parked' && resumeSubscription.isInDoubt?.(row) === true) inDoubt += 1
      const message = explain(row) ?? ''
      const needsAttention =
        place === 'rejected' || place === 'unknown' || (place === 'parked' && !isOnlyReported)
      const { key: subscription, breakerKey: reason } = row
      named.add(
        place,
        { row: row.row, subscription },
        needsAttention ? { message, outward: sentenceFor(row.outcome) ?? '' } : undefined,
      )
      if (row.outcome === 'coolingDown' && coolingDown.length < mostCooling)
        coolingDown.push({ subscription, message })
      if (row.error === canaryFailed) skipped.set(reason, (skipped.get(reason) ?? 0) + 1)
      const outcome = ended !== undefined || place !== 'staged' ? outcomeOf(row) : 'notResumedYet'
      const outcomes = (byReason[reason] ??= {})
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
      if (outcome === 'recovered')
        addListValue(recoveredValue, reason, (parseBody(row) as Candidate).snapshot.value)
    },
  }
}

function toReport(
  plan: RecoveryPlan,
  { snapshot, ended, asked }: Partial<RecoveryNotes>,
  tally: Tally,
  summary: ReportSummary,
): Omit<RecoveryReport, 'files' | 'rows'> {
  const { counts, outcomes } = summary
  const { byReason, recoveredValue } = tally
  const reported = tally.reported()
  const failedCanaries = tally.failedCanaries()
  const proof = verdictOf({
    kind: 'resume-subscription',
    summary: { ...summary, counts: { ...counts, parked: counts.parked - reported } },
    ...(snapshot && { listProven: snapshot.proven }),
  })
  // A dry run changes nothing: only the list can be incomplete.
  const reasons = [...(plan.dryRun ? [] : proof.reasons), ...(snapshot?.reasons ?? [])]
  const parked = counts.parked - reported
  const resultsSeen = tally.inDoubt() === 0 && reasons.join() === `${parked} ${countLabels.parked}`
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
  const count = (number: number, label: string) => (number === 0 ? [] : [`${number} ${label}`])
  return [
    toResume === 0 ? 'nothing to resume' : `${counts.done - alreadyFine} of ${toResume} recovered`,
    ...count(alreadyFine, 'already fine'),
    ...count(counts.rejected, 'refused'),
    ...count(gone, 'cancelled or finalized meanwhile'),
    ...count(dropped, 'dropped by a person'),
    // The reasons already include the counts of parked, unknown and untried rows.
    reasons.length === 0
      ? parked === 0
        ? 'proven'
        : `${parked} ${parked === 1 ? 'needs' : 'need'} a person`
      : `${ended === undefined ? 'not ended' : 'unproven'}: ${reasons.join('; ')}`,
    ...count(coolingDown, 'resumed recently and left alone'),
    ...count(reported, reported === 1 ? 'other needs a person' : 'others need a person'),
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
  const count = ([outcome, text]: [string, string]) => {
    const number = totals.get(outcome)
    return number === undefined ? [] : [`${number} ${text}`]
  }
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

/** Closes the subscriptions of a recovery that remain, and writes its report and its files. */
export async function closeRecovery(
  options: RunEnd & {
    ledger: Ledger
    notes: RunNotes
    dataDir: string
    shared: SharedFolder
    plan: RecoveryPlan
  },
): Promise<{ result: RecoveryReport; view: View }> {
  const { ledger, notes, dataDir, shared, plan, how, why } = options
  await closeRemaining({ ledger, run: plan.run, why: why ?? 'the run ended' })
  const ended: EndedNote = { how, ...(why !== undefined && { why }), at: new Date().toISOString() }
  const refuseSuperseded = () => notes.write(plan.run, { ended })
  await refuseSuperseded()
  const closing = { shared, refuseSuperseded }
  const { result, outward: view } = await writeRecoveryReport({ ledger, notes, plan, dataDir, closing })
  return { result, view }
}
