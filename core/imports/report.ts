import { join } from 'node:path'
import { sentenceFor } from '../changes/outcomes.ts'
import { type Closing, explain, writeReport } from '../changes/view.ts'
import {
  createRowTally,
  mostMessages,
  placeOf,
  type ReportSummary,
  type RowReason,
  summarize,
} from '../changes/report.ts'
import { verdictOf } from '../changes/verdict.ts'
import { countLabels, places, sumOf } from '../runs/view/counts.ts'
import type { EndedNote, RunNotes } from '../runs/run-notes.ts'
import { toFetch, type View } from '../runs/view/view.ts'
import { readJson } from '../storage/durable.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { LedgerRow } from '../state/ledger/row.ts'
import { type ImportPlan, runFiles } from './input.ts'
import { type FileCheck, sameAs } from './check.ts'
import { importKinds } from './kinds.ts'
import { type Problem, toOutwardSentence, toRowSentence } from './problems.ts'
import { type RowResult, sheetNames, writeResults } from './result-sheets.ts'
import { type AuditNote, fileOf, type ImportNotes, type Origin, type StagedNote } from './run-files.ts'
import { columnNames, createReceipt } from './totals.ts'
import {
  type FullReport,
  type ImportReport,
  type ImportResult,
  importNextSteps,
  isProblem,
  problems,
  toImportView,
} from './view.ts'

type Counting = Parameters<typeof summarize>[0]['ledger'] & Pick<Ledger, 'rows'>

/**
 * Writes report.json, report.html, results.csv, rejected.csv and parked.csv into the run's folder, from the
 * ledger and the run files, in one pass over the rows.
 */
export async function writeImportReport(options: {
  ledger: Counting
  plan: ImportPlan
  dataDir: string
  notes: RunNotes
  /** Where several workers share the files, people find them on another machine: paths are relative to its data folder. */
  closing?: Closing
}): Promise<{
  result: ImportResult
  report: FullReport
  view: View
  /** The view for Temporal: without what rows and the person's command contain. */
  outward: View
}> {
  const { ledger, plan, dataDir, closing } = options
  const isShared = closing?.shared.isShared === true
  const { kind, file, startedAt, identity, sendAgain } = plan
  const folder = join(dataDir, plan.folder)
  const root = isShared ? '' : dataDir
  const notes = await options.notes.read<ImportNotes>(plan.run)
  const { check, staged, decisions } = notes
  const origin = await readJson<Origin>(join(folder, runFiles.origin))
  const fileTotals = staged?.totals ?? check?.totals
  // If nothing was sent, there are no results.
  const sheets = plan.dryRun || staged === undefined ? [] : sheetNames
  const paths = [...sheets, 'report' as const].map((name) => [name, join(root, plan.folder, runFiles[name])])
  const receipt = createReceipt(importKinds[kind])
  const tally = createRowTally<number>()
  async function* readRows(): AsyncGenerator<RowResult> {
    for await (const change of ledger.rows({ run: plan.run })) {
      receipt.add(change)
      const { row, answerId: id, sentAt, body } = change
      const status = placeOf(change)
      const error = explain(change)
      const reason = () => ({ message: error ?? '', outward: outwardReason(change, check) })
      tally.add(status, row, isProblem(status) ? reason() : undefined)
      yield { row, status, id, error, sentAt, body }
    }
  }
  const nextSteps = (
    { ended, counts, rows }: FullReport,
    own: Pick<Parameters<typeof importNextSteps>[0], 'origin' | 'message'> = {},
  ) => [
    ...(isShared ? [toFetch(plan.run)] : []),
    ...importNextSteps({ plan, dataDir: root, ended, counts, parkedRow: rows.parked?.[0], ...own }),
  ]
  let written: { result: ImportReport; report: FullReport } | undefined
  await writeReport({
    folder,
    closing,
    sheets: sheets.map((sheet) => runFiles[sheet]),
    async write(fresh) {
      const results = readRows()
      if (sheets.length === 0) for await (const _ of results);
      else await writeResults({ ...(await fileOf({ plan, dataDir, check })), results, folder: fresh })
      const first = plan.dryRun
        ? (check?.problems ?? []).slice(0, mostMessages).map(toFirst)
        : problems.flatMap((state) =>
            (tally.first[state] ?? []).map(({ named: row, ...reason }) => ({ row, state, ...reason })),
          )
      const summary = await summarize({ ledger, run: plan.run, staged: shouldBeStaged({ plan, staged }) })
      const result: ImportReport = {
        ...toReport(plan, notes, summary),
        files: Object.fromEntries(paths) as ImportReport['files'],
        rows: tally.rows,
      }
      const report: FullReport = {
        ...result,
        kind,
        file,
        ...(check && { check: toShown(check) }),
        ...(check?.sheets && { sheets: check.sheets }),
        startedAt,
        identity,
        first: first.map(withReason('message')),
        totals: fileTotals
          ? receipt.receipt(fileTotals, sendAgain.length, columnNames(check?.columns))
          : null,
        decisions,
        folder: join(root, plan.folder),
        next: [],
      }
      report.next = nextSteps(report, { origin, message: first[0]?.message })
      written = { result, report }
      // Where what the service said is why a run ended, nobody should have to look for it.
      const kept =
        report.ended?.canary === true ? report : { ...report, first: first.map(withReason('outward')) }
      return { report: kept, view: toImportView(kept) }
    },
  })
  const { result, report } = written!
  const totals = report.totals && { ...report.totals, columns: {} }
  const { check: checked, ...others } = report
  const outward = {
    ...others,
    ...(checked && { check: { ...checked, columns: [] } }),
    totals,
    first: [],
    next: nextSteps(report),
  }
  const audit = result.audit && withoutFindings(result.audit)
  return {
    result: { ...result, audit },
    report,
    view: toImportView(report),
    outward: toImportView(outward),
  }
}

const toShown = ({ valid, invalid, columns }: FileCheck): NonNullable<FullReport['check']> => ({
  valid,
  invalid,
  columns: columns.map(({ column, field }) => ({ column, field })),
})

const toFirst = (problem: Problem): FirstRow => ({
  row: problem.row,
  state: 'rejected',
  message: toRowSentence(problem),
  outward: outwardRule(problem),
})

type FirstRow = FullReport['first'][number] & RowReason

const withReason = (kind: keyof RowReason) => (first: FirstRow) => ({
  row: first.row,
  state: first.state,
  message: first[kind],
})

/** Why a row is not done, in sentences without values. */
function outwardReason({ row, outcome }: LedgerRow, check: FileCheck | undefined): string {
  const other = check?.duplicates[row]
  if (check && other !== undefined) return sameAs(importKinds[check.kind], other)
  const problem = outcome === 'invalid' ? check?.problems.find((one) => one.row === row) : undefined
  return problem === undefined ? (sentenceFor(outcome) ?? '') : outwardRule(problem)
}

const outwardRule = (problem: Problem) => toOutwardSentence(problem).replace(/^row \d+(, |: )/, '')

function withoutFindings(note: AuditNote): ImportResult['audit'] {
  const { first: _, ...audit } = note
  return audit
}

function toReport(
  plan: ImportPlan,
  { audit, ended, staged, check }: Partial<ImportNotes>,
  summary: ReportSummary,
): Omit<ImportReport, 'files' | 'rows'> {
  const { counts, outcomes } = summary
  const proof = verdictOf({
    kind: importKinds[plan.kind].change.name,
    summary,
    ...(audit && { audit }),
  })
  const unseen = (staged?.existingReasons ?? []).map(
    (reason) => `records that the service had before could not all be seen: ${reason}`,
  )
  const inDoubt = staged?.doubtfulEarlier
    ? [`${staged.doubtfulEarlier} done by an earlier run, but in doubt there`]
    : []
  const reasons = staged === undefined ? ['nothing was staged'] : [...proof.reasons, ...unseen, ...inDoubt]
  const { valid = 0, invalid = 0, totals } = check ?? {}
  return {
    run: plan.run,
    ...(plan.dryRun
      ? {
          summary: `dry run, nothing was sent: ${valid} valid and ${invalid} invalid of ${totals?.changes ?? 0} ${plan.kind}`,
          verdict: 'dryRun',
          reasons: [],
        }
      : {
          summary: toSummary(plan, summary, reasons, { by: proof.by, ended }),
          verdict: reasons.length === 0 ? proof.verdict : 'unproven',
          reasons,
        }),
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

function toSummary(
  { kind }: ImportPlan,
  { counts, outcomes }: ReportSummary,
  reasons: readonly string[],
  { by, ended }: Pick<ImportReport, 'by'> & { ended: EndedNote | undefined },
): string {
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
  return [`${counts.done} of ${sumOf(counts)} ${kind} done${earlier}`, ...others, proof, ...why].join('; ')
}
