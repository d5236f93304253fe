import type { FullReport, RecoveryReport } from './view.ts'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ReportCounts } from '../runs/counts.ts'
import { placeOf, summarize } from '../changes/report.ts'
import { verdictOf } from '../changes/verdict.ts'
import { Pace } from '../runs/view/throughput.ts'
import { toReportPage } from '../runs/view/html.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import { readJournal } from './candidates/journal.ts'
import { outcomeOf, type RecoveryRow, toRecoveryRow, writeRecoveryCsv } from './csv.ts'
import { toRecoveryAccount } from './view.ts'
import { type RecoveryPlan, recoveryFiles } from './plan.ts'
import { type RecoveryNotes, readRecoveryNotes, type SavedPlan, type SnapshotNote } from './run-files.ts'
import { selectCandidates } from './candidates/select.ts'
import { toSummary } from './summary.ts'
import { becauseOf } from './reasons.ts'

const mostRows = 500

interface ReportOptions {
  ledger: Ledger
  saved: SavedPlan
  dataDir: string
}

/**
 * Writes report.json and report.html, and recovery.csv of a run into its folder, from the ledger and the run's notes. May be called
 * at any moment, also beside a worker: each file is replaced whole.
 */
export async function writeRecoveryReport(options: ReportOptions): Promise<RecoveryReport> {
  const { ledger, saved, dataDir } = options
  const { plan } = saved
  const folder = join(dataDir, plan.folder)
  const notes = await readRecoveryNotes(folder)
  const { rows, resolved, byReason, pace } = await lookThrough({ ledger, run: plan.run })
  const names = notes.snapshot === undefined ? (['report'] as const) : (['results', 'report'] as const)
  const paths = names.map((name) => [name, join(folder, recoveryFiles[name])])
  const report: RecoveryReport = {
    ...(await toAccount({ ...options, notes, byReason })),
    files: Object.fromEntries(paths) as RecoveryReport['files'],
    rows,
  }
  const { startedAt, identity } = plan
  const full: FullReport = { ...report, startedAt, identity, decisions: notes.decisions, resolved }
  const fresh = await mkdtemp(join(folder, '.report-'))
  try {
    if (notes.snapshot !== undefined)
      await writeRecoveryCsv({ rows: rowsOf({ ...options, folder }), to: join(fresh, recoveryFiles.results) })
    await writeFile(join(fresh, recoveryFiles.report), `${JSON.stringify(full, null, 2)}\n`)
    const page = toReportPage(toRecoveryAccount({ report: full, points: pace.points() }))
    await writeFile(join(fresh, recoveryFiles.page), page)
    for (const name of ['page' as const, ...names])
      await rename(join(fresh, recoveryFiles[name]), join(folder, recoveryFiles[name]))
  } finally {
    await rm(fresh, { recursive: true, force: true })
  }
  return report
}

async function toAccount({
  ledger,
  saved,
  notes,
  byReason,
}: ReportOptions & { notes: RecoveryNotes; byReason: RecoveryReport['byReason'] }): Promise<
  Omit<RecoveryReport, 'files' | 'rows'>
> {
  const { plan } = saved
  const { snapshot, ended } = notes
  const summary = await summarize({ ledger, run: plan.run, staged: snapshot?.staged ?? 0 })
  const said = verdictOf({
    kind: 'resume-subscription',
    summary,
    ...(snapshot && { listProven: snapshot.proven }),
  })
  // A dry run is no run of changes: all that can keep it from being whole is the list.
  const reasons = [...(plan.dryRun ? [] : said.reasons), ...(snapshot?.reasons ?? [])]
  const { counts, outcomes } = summary
  return {
    run: plan.run,
    summary: toSummary({ plan, counts, outcomes, reasons, snapshot, ended }),
    ...(plan.dryRun ? { verdict: 'dryRun', reasons } : { verdict: said.verdict, reasons }),
    by: said.by,
    ...(ended && { ended }),
    counts,
    outcomes,
    byReason,
    needsPerson: toNeeds({ byReason, snapshot, plan }),
    snapshot: snapshot ?? null,
    preview: snapshot?.preview ?? null,
    ...toContinueWith({ saved, snapshot, counts }),
    audit: null,
  }
}

/** From the ledger; a dry run has nothing in there, so it is selected once more from what was read. */
async function* rowsOf({
  ledger,
  saved,
  folder,
}: ReportOptions & { folder: string }): AsyncGenerator<RecoveryRow> {
  const { plan, narrowing } = saved
  if (!plan.dryRun) {
    for await (const row of ledger.rows({ run: plan.run })) yield toRecoveryRow(row)
    return
  }
  const candidates = await readJournal(join(folder, recoveryFiles.journal))
  const { workspace, mode } = plan.identity
  const keys = candidates.map(({ id }) => id)
  const history = await ledger.history({ workspace, mode, kind: 'resume-subscription', keys })
  const { rows } = selectCandidates({ plan, ...narrowing, candidates, history })
  for (const { candidate, change } of rows) {
    const { outcome = 'wouldResume', error = null } = change.closed ?? {}
    yield { row: change.row, candidate, attempts: 0, outcome, words: error, saw: undefined, resumedAt: null }
  }
}

async function lookThrough({ ledger, run }: { ledger: Ledger; run: string }) {
  const rows: RecoveryReport['rows'] = {}
  const resolved: FullReport['resolved'] = []
  const byReason: RecoveryReport['byReason'] = {}
  const pace = new Pace()
  for await (const row of ledger.rows({ run })) {
    if (row.sentAt !== null && row.closedAt !== null) pace.add(row.closedAt)
    const place = placeOf(row)
    if (place !== 'done' && place !== 'staged' && (rows[place]?.length ?? 0) < mostRows)
      (rows[place] ??= []).push({ row: row.row, subscription: row.key })
    if (row.resolvedBy !== null)
      resolved.push({ row: row.row, by: row.resolvedBy, why: row.resolvedWhy ?? '', state: row.state })
    const ofReason = (byReason[row.breakerKey] ??= {})
    const outcome = outcomeOf(row)
    ofReason[outcome] = (ofReason[outcome] ?? 0) + 1
  }
  return { rows, resolved, byReason, pace }
}

const forPerson: Readonly<Record<string, string>> = {
  fellBack: 'fell back, and the run ended before they were tried again',
  noEffect: 'showed no effect of the resume, and the run ended before they were tried again',
  refused: 'were refused by the service; its words are in recovery.csv',
  notFound: 'were not found again in the list: look for them in the service',
  unknown: 'were resumed, and what became of them was not seen: the next recovery looks first',
}

function toNeeds({
  byReason,
  snapshot,
  plan,
}: {
  byReason: RecoveryReport['byReason']
  snapshot: SnapshotNote | undefined
  plan: RecoveryPlan
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
    ...Object.entries(forPerson).flatMap(([outcome, words]) => {
      const number = totals.get(outcome)
      return number === undefined ? [] : [`${number} ${words}`]
    }),
  ]
}

const whyUsedUp = ({ attempts }: RecoveryPlan) =>
  `fell back each time and have used up their attempts (${attempts}), which hold over all runs: look at why in the service; only a higher attempts resumes them again`

/** Each run takes a snapshot of its own, so the same input goes on; a list that was not seen whole needs more pages. */
function toContinueWith({
  saved,
  snapshot,
  counts,
}: {
  saved: SavedPlan
  snapshot: SnapshotNote | undefined
  counts: ReportCounts
}): Pick<RecoveryReport, 'continueWith'> {
  const isLeft = counts.notTried + counts.staged > 0 || (snapshot?.preview.notResumed['notTried'] ?? 0) > 0
  if (snapshot?.capped === true) {
    const pages = Math.ceil(((snapshot.count ?? 0) / 100) * 1.5) + 5
    return { continueWith: { ...saved.asked, maxPages: Math.max(pages, 2 * saved.plan.maxPages) } }
  }
  return isLeft ? { continueWith: saved.asked } : {}
}
