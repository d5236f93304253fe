import type { FullReport, ImportReport } from './view.ts'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ReportCounts } from '../runs/counts.ts'
import { placeOf, summarize } from '../changes/report.ts'
import type { EndedNote } from '../runs/run-files.ts'
import { type ChangesVerdict, verdictOf } from '../changes/verdict.ts'
import { Pace } from '../runs/view/throughput.ts'
import { toReportPage } from '../runs/view/html.ts'
import { toImportAccount } from './view.ts'
import { importKinds } from './kinds.ts'
import { type ImportPlan, runFiles } from './plan.ts'
import { fileOf, readRunNotes, type RunNotes, type StagedNote } from './run-files.ts'
import { type RowResult, type Sheet, writeResults } from './result-sheets.ts'

type Ledger = Parameters<typeof summarize>[0]['ledger']

const mostRows = 500

interface ReportOptions {
  ledger: Ledger
  plan: ImportPlan
  dataDir: string
}

/**
 * Writes report.json and report.html, results.csv, rejected.csv and parked.csv of a run into its folder, from the ledger and the
 * run's notes. May be called at any moment, also beside a worker: each file is replaced whole.
 */
export async function writeImportReport(options: ReportOptions): Promise<ImportReport> {
  const { ledger, plan, dataDir } = options
  const folder = join(dataDir, plan.folder)
  const notes = await readRunNotes(folder)
  // What sent nothing has no results.
  const names = plan.dryRun || notes.staged === undefined ? [] : (['results', 'rejected', 'parked'] as const)
  const { rows, resolved, pace } = await lookThrough({ ledger, run: plan.run })
  const paths = [...names, 'report' as const].map((name) => [name, join(folder, runFiles[name])])
  const report: ImportReport = {
    ...(await toAccount({ ...options, notes })),
    files: Object.fromEntries(paths) as ImportReport['files'],
    rows,
  }
  const { kind, file, startedAt, identity } = plan
  const totals = notes.staged?.totals ?? notes.check?.totals ?? null
  const more = { kind, file, startedAt, identity, totals, decisions: notes.decisions, resolved }
  await writeFiles({ ...options, folder, names, report: { ...report, ...more }, pace })
  return report
}

async function toAccount({
  ledger,
  plan,
  notes,
}: ReportOptions & { notes: RunNotes }): Promise<Omit<ImportReport, 'files' | 'rows'>> {
  const { audit, ended, staged } = notes
  const summary = await summarize({ ledger, run: plan.run, staged: shouldBeStaged({ plan, staged }) })
  const { counts, outcomes } = summary
  const kind = importKinds[plan.kind].change.name
  const said = verdictOf({ kind, summary, ...(audit && { audit }) })
  const unseen = (staged?.existingReasons ?? []).map(
    (reason) => `what the service had before could not be seen whole: ${reason}`,
  )
  const reasons = staged === undefined ? ['nothing was staged'] : [...said.reasons, ...unseen]
  const verdict = reasons.length === 0 ? said.verdict : 'unproven'
  return {
    run: plan.run,
    summary: plan.dryRun
      ? toDrySummary({ plan, notes })
      : toSummary({ plan, counts, reasons, by: said.by, ended }),
    ...(plan.dryRun ? { verdict: 'dryRun', reasons: [] } : { verdict, reasons }),
    by: said.by,
    ...(ended && { ended }),
    counts,
    audit: audit ?? null,
    outcomes,
  }
}

/** What was staged, and no less than the file has. */
function shouldBeStaged({ plan, staged }: { plan: ImportPlan; staged: StagedNote | undefined }): number {
  if (staged === undefined || plan.dryRun) return 0
  return plan.sendAgain.length > 0 ? staged.staged : Math.max(staged.staged, staged.changes)
}

async function writeFiles(
  options: ReportOptions & { folder: string; names: readonly Sheet[]; report: FullReport; pace: Pace },
): Promise<void> {
  const { ledger, plan, dataDir, folder, names, report, pace } = options
  const fresh = await mkdtemp(join(folder, '.report-'))
  try {
    const { check } = await readRunNotes(folder)
    const file = await fileOf({ plan, dataDir, check })
    for (const sheet of names) {
      const results = resultsOf({ ledger, run: plan.run })
      await writeResults({ ...file, sheet, results, to: join(fresh, runFiles[sheet]) })
    }
    await writeFile(join(fresh, runFiles.report), `${JSON.stringify(report, null, 2)}\n`)
    const page = toReportPage(toImportAccount({ report, points: pace.points() }))
    await writeFile(join(fresh, runFiles.page), page)
    for (const name of [...names, 'page', 'report'] as const)
      await rename(join(fresh, runFiles[name]), join(folder, runFiles[name]))
  } finally {
    await rm(fresh, { recursive: true, force: true })
  }
}

async function* resultsOf({ ledger, run }: { ledger: Ledger; run: string }): AsyncGenerator<RowResult> {
  for await (const row of ledger.rows({ run })) {
    const said = row.resolvedBy === null ? [] : [`${row.resolvedBy}: ${row.resolvedWhy ?? ''}`]
    yield {
      row: row.row,
      status: placeOf(row),
      id: row.answerId,
      error: [...(row.error === null ? [] : [row.error]), ...said].join('; ') || null,
      sentAt: row.sentAt,
      body: row.body,
    }
  }
}

async function lookThrough({ ledger, run }: { ledger: Ledger; run: string }) {
  const rows: ImportReport['rows'] = {}
  const resolved: FullReport['resolved'] = []
  const pace = new Pace()
  for await (const row of ledger.rows({ run })) {
    if (row.sentAt !== null && row.closedAt !== null) pace.add(row.closedAt)
    const place = placeOf(row)
    if (place !== 'done' && place !== 'staged' && (rows[place]?.length ?? 0) < mostRows)
      (rows[place] ??= []).push(row.row)
    if (row.resolvedBy !== null)
      resolved.push({ row: row.row, by: row.resolvedBy, why: row.resolvedWhy ?? '', state: row.state })
  }
  return { rows, resolved, pace }
}

const places: Readonly<Record<keyof ReportCounts, string>> = {
  done: 'done',
  rejected: 'rejected',
  parked: 'parked, for a person',
  unknown: 'unknown',
  staged: 'not sent yet',
  skipped: 'left out',
  notTried: 'not tried',
}

function toDrySummary({ plan, notes: { check } }: { plan: ImportPlan; notes: RunNotes }): string {
  const { valid = 0, invalid = 0, totals } = check ?? {}
  return `dry run, nothing was sent: ${valid} valid and ${invalid} invalid of ${totals?.changes ?? 0} ${plan.kind}`
}

function toSummary({
  plan,
  counts,
  reasons,
  by,
  ended,
}: {
  plan: ImportPlan
  counts: ReportCounts
  reasons: readonly string[]
  by: ChangesVerdict['by']
  ended: EndedNote | undefined
}): string {
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0)
  const others = (Object.keys(places) as (keyof ReportCounts)[])
    .filter((place) => place !== 'done' && counts[place] > 0)
    .map((place) => `${counts[place]} ${places[place]}`)
  const proof = reasons.length === 0 ? `proven by ${by}` : `unproven: ${reasons.join('; ')}`
  const why = ended?.why === undefined ? [] : [ended.why]
  return [`${counts.done} of ${all} ${plan.kind} done`, ...others, proof, ...why].join('; ')
}
