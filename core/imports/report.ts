import { join } from 'node:path'
import { explain } from '../changes/decisions.ts'
import { placeOf, summarize } from '../changes/report.ts'
import { type ChangesVerdict, verdictOf } from '../changes/verdict.ts'
import { writeReport } from '../changes/write-report.ts'
import type { EndedNote } from '../runs/run-files.ts'
import { countLabels, places, type ReportCounts, sumOf } from '../runs/view/counts.ts'
import type { View } from '../runs/view/view.ts'
import { importKinds } from './kinds.ts'
import { toFetch } from '../runs/view/to-fetch.ts'
import { importNextSteps } from './next-steps.ts'
import { type ImportPlan, runFiles } from './plan.ts'
import { columnNames, createReceipt, withoutNames } from './receipt.ts'
import { type RowResult, writeResults } from './result-sheets.ts'
import { fileOf, type Origin, readRunNotes, type RunNotes, type StagedNote } from './run-files.ts'
import { type FullReport, type ImportReport, isProblem, problems, toImportView } from './view.ts'

type Ledger = Parameters<typeof summarize>[0]['ledger']

const mostRows = 500

interface ReportOptions {
  ledger: Ledger
  plan: ImportPlan
  dataDir: string
  /** Whether people find the files on another machine: paths are then relative to its data folder. */
  isShared?: boolean
}

/**
 * Writes report.json, report.html, results.csv, rejected.csv and parked.csv into the run's folder, from the
 * ledger and the run files.
 */
export async function writeImportReport(options: ReportOptions): Promise<{
  report: FullReport
  view: View
  /** The view for Temporal: without what rows and the person's command contain. */
  outward: View
}> {
  const { ledger, plan, dataDir, isShared = false } = options
  const folder = join(dataDir, plan.folder)
  const shownIn = isShared ? '' : dataDir
  const notes = await readRunNotes(folder)
  // If nothing was sent, there are no results.
  const sheets = plan.dryRun || notes.staged === undefined ? [] : (['results', 'rejected', 'parked'] as const)
  const { rows, first, receipt } = await readRows({ ledger, plan })
  const fileTotals = notes.staged?.totals ?? notes.check?.totals
  const paths = [...sheets, 'report' as const].map((name) => [
    name,
    join(shownIn, plan.folder, runFiles[name]),
  ])
  const { kind, file, startedAt, identity } = plan
  const report: FullReport = {
    ...(await toReport({ ...options, notes })),
    files: Object.fromEntries(paths) as ImportReport['files'],
    rows,
    kind,
    file,
    ...(notes.check?.sheets && { sheets: notes.check.sheets }),
    startedAt,
    identity,
    first,
    totals:
      fileTotals === undefined
        ? null
        : receipt.receipt(fileTotals, plan.sendAgain.length, columnNames(notes.check)),
    decisions: notes.decisions,
    folder: join(shownIn, plan.folder),
    next: [],
  }
  const { ended, counts } = report
  const nextSteps = (own: { origin?: Origin | undefined; message?: string | undefined }) => [
    ...(isShared ? [toFetch(plan.run)] : []),
    ...importNextSteps({ plan, dataDir: shownIn, ended, counts, parkedRow: rows.parked?.[0], ...own }),
  ]
  report.next = nextSteps({ origin: notes.origin, message: first[0]?.message })
  const view = toImportView(report)
  const totals = report.totals && withoutNames(report.totals)
  const outward = toImportView({ ...report, totals, first: [], next: nextSteps({}) })
  // What the service said may repeat what was sent. Where it is why a run ended, nobody should have to look for it.
  const kept = ended?.canary === true ? report : { ...report, first: [] }
  await writeReport({
    folder,
    report: kept,
    view: toImportView(kept),
    sheets: sheets.map((sheet) => runFiles[sheet]),
    async writeSheets(fresh) {
      const input = await fileOf({ plan, dataDir, check: notes.check })
      for (const sheet of sheets) {
        const results = resultsOf({ ledger, run: plan.run })
        await writeResults({ ...input, sheet, results, to: join(fresh, runFiles[sheet]) })
      }
    },
  })
  return { report, view, outward }
}

async function toReport({
  ledger,
  plan,
  notes,
}: ReportOptions & { notes: RunNotes }): Promise<Omit<ImportReport, 'files' | 'rows'>> {
  const { audit, ended, staged } = notes
  const summary = await summarize({ ledger, run: plan.run, staged: shouldBeStaged({ plan, staged }) })
  const { counts, outcomes } = summary
  const kind = importKinds[plan.kind].change.name
  const proof = verdictOf({ kind, summary, ...(audit && { audit }) })
  const unseen = (staged?.existingReasons ?? []).map(
    (reason) => `records that the service had before could not all be seen: ${reason}`,
  )
  const inDoubt = staged?.doubtfulEarlier
    ? [`${staged.doubtfulEarlier} done by an earlier run, but in doubt there`]
    : []
  const reasons = staged === undefined ? ['nothing was staged'] : [...proof.reasons, ...unseen, ...inDoubt]
  const verdict = reasons.length === 0 ? proof.verdict : 'unproven'
  return {
    run: plan.run,
    summary: plan.dryRun
      ? toDrySummary({ plan, notes })
      : toSummary({ plan, counts, outcomes, reasons, by: proof.by, ended }),
    ...(plan.dryRun ? { verdict: 'dryRun', reasons: [] } : { verdict, reasons }),
    by: proof.by,
    ...(ended && { ended }),
    counts,
    audit: audit ?? null,
    outcomes,
  }
}

/** The number of changes staged, but at least as many as the file has. */
export function shouldBeStaged({
  plan,
  staged,
}: {
  plan: ImportPlan
  staged: StagedNote | undefined
}): number {
  if (staged === undefined || plan.dryRun) return 0
  return plan.sendAgain.length > 0 ? staged.staged : Math.max(staged.staged, staged.changes)
}

async function* resultsOf({ ledger, run }: { ledger: Ledger; run: string }): AsyncGenerator<RowResult> {
  for await (const row of ledger.rows({ run }))
    yield {
      row: row.row,
      status: placeOf(row),
      id: row.answerId,
      error: explain(row),
      sentAt: row.sentAt,
      body: row.body,
    }
}

/** Enough to see what is wrong; the sheets have all of them. */
const mostFirst = 5

async function readRows({ ledger, plan }: { ledger: Ledger; plan: ImportPlan }) {
  const first: FullReport['first'] = []
  const receipt = createReceipt(importKinds[plan.kind])
  const rows: ImportReport['rows'] = {}
  for await (const row of ledger.rows({ run: plan.run })) {
    receipt.add(row)
    const place = placeOf(row)
    if (place !== 'done' && place !== 'staged' && (rows[place]?.length ?? 0) < mostRows)
      (rows[place] ??= []).push(row.row)
    if (isProblem(place) && first.filter((one) => one.state === place).length < mostFirst)
      first.push({ row: row.row, state: place, message: explain(row) ?? '' })
  }
  first.sort((a, b) => problems.indexOf(a.state) - problems.indexOf(b.state))
  return { rows, first, receipt }
}

function toDrySummary({ plan, notes: { check } }: { plan: ImportPlan; notes: RunNotes }): string {
  const { valid = 0, invalid = 0, totals } = check ?? {}
  return `dry run, nothing was sent: ${valid} valid and ${invalid} invalid of ${totals?.changes ?? 0} ${plan.kind}`
}

function toSummary({
  plan,
  counts,
  outcomes,
  reasons,
  by,
  ended,
}: {
  plan: ImportPlan
  counts: ReportCounts
  outcomes: ImportReport['outcomes']
  reasons: readonly string[]
  by: ChangesVerdict['by']
  ended: EndedNote | undefined
}): string {
  const others = places
    .filter((place) => place !== 'done' && counts[place] > 0)
    .map((place) => `${counts[place]} ${countLabels[place]}`)
    // The reasons already include it.
    .filter((count) => !reasons.includes(count))
  const proof =
    reasons.length === 0
      ? `proven by ${by}`
      : `${ended === undefined ? 'not ended' : 'unproven'}: ${reasons.join('; ')}`
  const why = ended?.why === undefined ? [] : [ended.why]
  const { doneEarlier = 0 } = outcomes
  const earlier = doneEarlier === 0 ? '' : ` (${doneEarlier} by earlier runs)`
  return [`${counts.done} of ${sumOf(counts)} ${plan.kind} done${earlier}`, ...others, proof, ...why].join(
    '; ',
  )
}
