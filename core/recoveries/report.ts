import { join } from 'node:path'
import { explain } from '../changes/decisions.ts'
import { placeOf, summarize } from '../changes/report.ts'
import { verdictOf } from '../changes/verdict.ts'
import { writeReport } from '../changes/write-report.ts'
import { readNote } from '../runs/run-files.ts'
import { canaryFailed, type ReportCounts } from '../runs/view/counts.ts'
import type { View } from '../runs/view/view.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import { outcomeOf, type RecoveryRow, toRecoveryRow, writeRecoveryCsv } from './csv.ts'
import { toFetch } from '../runs/view/to-fetch.ts'
import { recoveryNextSteps } from './next-steps.ts'
import { type RecoveryPlan, recoveryFiles } from './plan.ts'
import { becauseOf } from './reasons.ts'
import { isReportedOnly, withoutReported } from './reported-only.ts'
import { type RecoveryNotes, readRecoveryNotes, type SavedPlan, type SnapshotNote } from './run-files.ts'
import { toSummary } from './summary.ts'
import { type FullReport, type RecoveryReport, toRecoveryView } from './view.ts'

const mostRows = 500

interface ReportOptions {
  ledger: Ledger
  saved: SavedPlan
  dataDir: string
  /** Whether people find the files on another machine: paths are then relative to its data folder. */
  isShared?: boolean
}

/** Writes report.json, report.html and recovery.csv into the run's folder, from the ledger and the run's notes. */
export async function writeRecoveryReport(options: ReportOptions): Promise<{
  result: RecoveryReport
  report: FullReport
  view: View
  /** The view for Temporal: without subscriptions and what the service said of them. */
  outward: View
}> {
  const { ledger, saved, dataDir, isShared = false } = options
  const { startedAt, identity } = saved.plan
  const folder = join(dataDir, saved.plan.folder)
  const shownFolder = join(isShared ? '' : dataDir, saved.plan.folder)
  const notes = await readRecoveryNotes(folder)
  const isEnded = notes.ended !== undefined
  const { first, coolingDown, ...found } = await readRows({ ledger, plan: saved.plan, isEnded })
  const { rows } = found
  const names = notes.snapshot === undefined ? (['report'] as const) : (['results', 'report'] as const)
  const paths = names.map((name) => [name, join(shownFolder, recoveryFiles[name])])
  const result: RecoveryReport = {
    ...(await toReport({ ...options, notes, ...found })),
    files: Object.fromEntries(paths) as RecoveryReport['files'],
    rows,
  }
  const report: FullReport = {
    ...result,
    startedAt,
    identity,
    next: [...(isShared ? [toFetch(saved.plan.run)] : []), ...recoveryNextSteps(result, saved.input)],
    decisions: notes.decisions,
    first,
    coolingDown,
    folder: shownFolder,
  }
  const view = toRecoveryView(report)
  const outward = toRecoveryView({ ...report, first: [], coolingDown: [] })
  // What the service said may repeat personal data. Where a canary failed, nobody should have to look for it.
  const kept = report.failedCanaries.length > 0 ? report : { ...report, first: [] }
  await writeReport({
    folder,
    sheets: notes.snapshot === undefined ? [] : [recoveryFiles.results],
    async write(fresh) {
      const rows = rowsOf({ ...options, folder })
      if (notes.snapshot !== undefined)
        await writeRecoveryCsv({ rows, to: join(fresh, recoveryFiles.results) })
      return { report: kept, view: toRecoveryView(kept) }
    },
  })
  return { result, report, view, outward }
}

async function toReport({
  ledger,
  saved,
  notes,
  byReason,
  reported,
  failedCanaries,
}: ReportOptions & {
  notes: RecoveryNotes
  failedCanaries: RecoveryReport['failedCanaries']
  byReason: RecoveryReport['byReason']
  reported: number
}): Promise<Omit<RecoveryReport, 'files' | 'rows'>> {
  const { plan } = saved
  const { snapshot, ended } = notes
  const summary = await summarize({ ledger, run: plan.run, staged: snapshot?.staged ?? 0 })
  const proof = verdictOf({
    kind: 'resume-subscription',
    summary: withoutReported(summary, reported),
    ...(snapshot && { listProven: snapshot.proven }),
  })
  // A dry run changes nothing: only the list can be incomplete.
  const reasons = [...(plan.dryRun ? [] : proof.reasons), ...(snapshot?.reasons ?? [])]
  const { counts, outcomes } = summary
  return {
    run: plan.run,
    summary: toSummary({ plan, counts, outcomes, reasons, reported, snapshot, ended }),
    ...(plan.dryRun ? { verdict: 'dryRun', reasons } : { verdict: proof.verdict, reasons }),
    by: proof.by,
    ...(ended && { ended }),
    counts,
    outcomes,
    reported,
    byReason,
    failedCanaries,
    needsPerson: toNeeds({ byReason, snapshot, plan, isEnded: ended !== undefined }),
    snapshot: snapshot ?? null,
    preview: snapshot?.preview ?? null,
    ...toContinueWith({ saved, snapshot, counts, failedCanaries }),
    audit: null,
  }
}

/** The rows from the ledger. A dry run has none there; its snapshot has decided them. */
async function* rowsOf({
  ledger,
  saved: { plan },
  folder,
}: ReportOptions & { folder: string }): AsyncGenerator<RecoveryRow> {
  if (plan.dryRun) yield* (await readNote<RecoveryRow[]>(join(folder, recoveryFiles.decided))) ?? []
  else for await (const row of ledger.rows({ run: plan.run })) yield toRecoveryRow(row)
}

/** Enough to see what is wrong; recovery.csv has all of them. */
const mostFirst = 5

async function readRows(of: { ledger: Ledger; plan: RecoveryPlan; isEnded: boolean }) {
  const { ledger, plan, isEnded } = of
  const first: FullReport['first'] = []
  const coolingDown: FullReport['coolingDown'] = []
  const skipped = new Map<string, number>()
  const rows: RecoveryReport['rows'] = {}
  const byReason: RecoveryReport['byReason'] = {}
  let reported = 0
  for await (const row of ledger.rows({ run: plan.run })) {
    const isOnlyReported = isReportedOnly(row, plan)
    if (isOnlyReported) reported += 1
    const place = placeOf(row)
    const shown = { row: row.row, subscription: row.key, message: explain(row) ?? '' }
    const isProblem = place === 'rejected' || place === 'unknown' || (place === 'parked' && !isOnlyReported)
    if (isProblem && first.filter((one) => one.state === place).length < mostFirst)
      first.push({ ...shown, state: place })
    if (row.outcome === 'coolingDown' && coolingDown.length < mostFirst) coolingDown.push(shown)
    if (row.error === canaryFailed) skipped.set(row.breakerKey, (skipped.get(row.breakerKey) ?? 0) + 1)
    if (place !== 'done' && place !== 'staged' && (rows[place]?.length ?? 0) < mostRows)
      (rows[place] ??= []).push({ row: row.row, subscription: row.key })
    const ofReason = (byReason[row.breakerKey] ??= {})
    const outcome = isEnded || place !== 'staged' ? outcomeOf(row) : 'notResumedYet'
    ofReason[outcome] = (ofReason[outcome] ?? 0) + 1
  }
  const failedCanaries = [...skipped].map(([reason, notTried]) => ({ reason, notTried }))
  return { rows, byReason, reported, failedCanaries, first, coolingDown }
}

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

function toNeeds({
  byReason,
  snapshot,
  plan,
  isEnded,
}: {
  byReason: RecoveryReport['byReason']
  snapshot: SnapshotNote | undefined
  plan: RecoveryPlan
  isEnded: boolean
}): string[] {
  const needs = plan.dryRun
    ? Object.entries(snapshot?.preview.needsPerson ?? {})
    : Object.entries(byReason).flatMap(([reason, outcomes]) =>
        outcomes['needsPerson'] === undefined ? [] : [[reason, outcomes['needsPerson']] as const],
      )
  const totals = new Map<string, number>()
  for (const outcomes of Object.values(byReason))
    for (const [outcome, number] of Object.entries(outcomes))
      totals.set(outcome, (totals.get(outcome) ?? 0) + number)
  const usedUp = totals.get('attemptsUsedUp')
  return [
    ...(usedUp === undefined ? [] : [`${usedUp} ${whyUsedUp(plan)}`]),
    ...needs.map(([reason, number]) => `${number} ${reason || 'without a reason'}: ${becauseOf(reason)}`),
    ...Object.entries(isEnded ? { ...forPerson, ...forPersonAtEnd } : forPerson).flatMap(
      ([outcome, text]) => {
        const number = totals.get(outcome)
        return number === undefined ? [] : [`${number} ${text}`]
      },
    ),
  ]
}

const whyUsedUp = ({ attempts }: RecoveryPlan) =>
  `fell back after every resume and used up their attempts (${attempts} across all runs): find the cause in the service; only a higher --attempts resumes them again`

/**
 * The input for a run that continues this one: each run takes its own snapshot, so the same input continues, with
 * more pages if the list was not read completely.
 */
function toContinueWith({
  saved,
  snapshot,
  counts,
  failedCanaries,
}: {
  saved: SavedPlan
  snapshot: SnapshotNote | undefined
  counts: ReportCounts
  failedCanaries: RecoveryReport['failedCanaries']
}): Pick<RecoveryReport, 'continueWith'> {
  const failed = failedCanaries.map(({ reason }) => reason)
  const reasons = saved.plan.reasons.filter((reason) => !failed.includes(reason))
  if (reasons.length === 0) return {}
  const input = failed.length === 0 ? saved.input : { ...saved.input, reasons }
  const beyondCanaries = failedCanaries.reduce((sum, { notTried }) => sum + notTried, 0)
  const isLeft =
    counts.notTried + counts.staged > beyondCanaries || (snapshot?.preview.notResumed['notTried'] ?? 0) > 0
  if (snapshot?.capped === true) {
    const pages = Math.ceil(((snapshot.count ?? 0) / 100) * 1.5) + 5
    return { continueWith: { ...input, maxPages: Math.max(pages, 2 * saved.plan.maxPages) } }
  }
  return isLeft ? { continueWith: input } : {}
}
