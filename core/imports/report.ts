import { join } from 'node:path'
import { explain } from '../changes/decisions.ts'
import { placeOf, summarize } from '../changes/report.ts'
import { type ChangesVerdict, verdictOf } from '../changes/verdict.ts'
import { writeReport } from '../changes/write-report.ts'
import type { EndedNote } from '../runs/run-files.ts'
import { countLabels, places, type ReportCounts, sumOf } from '../runs/view/counts.ts'
import type { NextStep, View } from '../runs/view/view.ts'
import { importKinds } from './kinds.ts'
import { toFetch } from '../runs/view/to-fetch.ts'
import { importNextSteps } from './next-steps.ts'
import { type ImportPlan, runFiles } from './plan.ts'
import { columnNames, createReceipt, withoutNames } from './receipt.ts'
import { type RowResult, type Sheet, sheetNames, writeResults } from './result-sheets.ts'
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
  const { plan, dataDir } = options
  const folder = join(dataDir, plan.folder)
  const notes = await readRunNotes(folder)
  // If nothing was sent, there are no results.
  const sheets = plan.dryRun || notes.staged === undefined ? [] : sheetNames
  let report: FullReport | undefined
  await writeReport({
    folder,
    sheets: sheets.map((sheet) => runFiles[sheet]),
    async write(fresh) {
      const tally = createTally(plan)
      const results = tally.read(options.ledger)
      if (sheets.length === 0) for await (const _ of results);
      else
        await writeResults({
          ...(await fileOf({ plan, dataDir, check: notes.check })),
          results,
          folder: fresh,
        })
      report = await toFullReport({ ...options, notes, sheets, tally })
      // What the service said may repeat what was sent. Where it is why a run ended, nobody should have to look for it.
      const kept = report.ended?.canary === true ? report : { ...report, first: [] }
      return { report: kept, view: toImportView(kept) }
    },
  })
  const written = report!
  const totals = written.totals && withoutNames(written.totals)
  const next = nextSteps({ ...options, report: written })
  const outward = toImportView({ ...written, totals, first: [], next })
  return { report: written, view: toImportView(written), outward }
}

type Tally = ReturnType<typeof createTally>

async function toFullReport(
  options: ReportOptions & { notes: RunNotes; sheets: readonly Sheet[]; tally: Tally },
): Promise<FullReport> {
  const { plan, dataDir, isShared = false, notes, sheets, tally } = options
  const folder = join(isShared ? '' : dataDir, plan.folder)
  const fileTotals = notes.staged?.totals ?? notes.check?.totals
  const { kind, file, startedAt, identity } = plan
  const { rows, receipt } = tally
  const first = tally.first.toSorted((a, b) => problems.indexOf(a.state) - problems.indexOf(b.state))
  const paths = [...sheets, 'report' as const].map((name) => [name, join(folder, runFiles[name])])
  const report: FullReport = {
    ...(await toReport(options)),
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
    folder,
    next: [],
  }
  const own = { origin: notes.origin, message: first[0]?.message }
  return { ...report, next: nextSteps({ ...options, report, ...own }) }
}

function nextSteps(
  options: ReportOptions & {
    report: FullReport
    origin?: Origin | undefined
    message?: string | undefined
  },
): NextStep[] {
  const { plan, dataDir, isShared = false, report, origin, message } = options
  const { ended, counts, rows } = report
  const place = { plan, dataDir: isShared ? '' : dataDir, origin, message }
  return [
    ...(isShared ? [toFetch(plan.run)] : []),
    ...importNextSteps({ ...place, ended, counts, parkedRow: rows.parked?.[0] }),
  ]
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

/** Enough to see what is wrong; the sheets have all of them. */
const mostFirst = 5

/** What the report has of the rows, collected while the sheets are written. */
function createTally(plan: ImportPlan) {
  const first: FullReport['first'] = []
  const receipt = createReceipt(importKinds[plan.kind])
  const rows: ImportReport['rows'] = {}
  return {
    first,
    receipt,
    rows,
    async *read(ledger: Ledger): AsyncGenerator<RowResult> {
      for await (const change of ledger.rows({ run: plan.run })) {
        receipt.add(change)
        const { row, answerId, sentAt, body } = change
        const place = placeOf(change)
        const error = explain(change)
        if (place !== 'done' && place !== 'staged' && (rows[place]?.length ?? 0) < mostRows)
          (rows[place] ??= []).push(row)
        if (isProblem(place) && first.filter((one) => one.state === place).length < mostFirst)
          first.push({ row, state: place, message: error ?? '' })
        yield { row, status: place, id: answerId, error, sentAt, body }
      }
    },
  }
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
