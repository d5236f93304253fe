import { join } from 'node:path'
import { sentenceFor } from '../changes/outcomes.ts'
import type { ReportSummary } from '../changes/report.ts'
import { verdictOf } from '../changes/verdict.ts'
import { type Reported, type Reporting, type RowTally, writeChangesReport } from '../changes/write-report.ts'
import { counted, countLabels, resolvedByPerson, sumOf } from '../runs/view/counts.ts'
import type { EndedNote } from '../runs/run-notes.ts'
import { readJson } from '../storage/durable.ts'
import type { LedgerRow } from '../state/ledger/row.ts'
import { type ImportPlan, runFiles } from './input.ts'
import { type FileCheck, sameAs } from './check.ts'
import { importKinds } from './kinds.ts'
import { toOutwardRowSentence, toRowSentence } from './problems.ts'
import { sheetNames, writeResults } from './result-sheets.ts'
import { type AuditNote, fileOf, type ImportNotes, type Origin, type StagedNote } from './run-files.ts'
import { columnNames, createReceipt } from './totals.ts'
import {
  type FullReport,
  type ImportReport,
  type ImportResult,
  importNextSteps,
  isProblem,
  toImportView,
} from './view.ts'

/** Writes the report of an import, with results.csv, rejected.csv and parked.csv; see `writeChangesReport`. */
export async function writeImportReport(
  options: Reporting<ImportPlan>,
): Promise<Reported<ImportResult, FullReport>> {
  const { plan, dataDir, closing } = options
  const { run, kind, file, sendAgain, dryRun } = plan
  const notes = await options.notes.read<ImportNotes>(run)
  const { check, staged, decisions } = notes
  const origin = await readJson<Origin>(join(dataDir, plan.folder, runFiles.origin))
  const fileTotals = staged?.totals ?? check?.totals
  // If nothing was sent, there are no results.
  const sheets = dryRun || staged === undefined ? [] : sheetNames
  const receipt = createReceipt(importKinds[kind])
  const root = closing?.shared.isShared === true ? '' : dataDir
  return await writeChangesReport<{ row: number }, ImportResult, FullReport>(options, {
    staged: shouldBeStaged({ plan, staged }),
    sheets: Object.fromEntries(sheets.map((name) => [name, runFiles[name]])),
    async writeSheets(results, folder) {
      await writeResults({ ...(await fileOf({ plan, dataDir, check })), results, folder })
    },
    take(row, place) {
      receipt.add(row)
      return { named: { row: row.row }, outward: isProblem(place) ? outwardReason(row, check) : undefined }
    },
    invalid: (dryRun && check ? check.problems : []).map((problem) => ({
      named: { row: problem.row },
      message: toRowSentence(problem),
      outward: toOutwardRowSentence(problem),
    })),
    describe(summary, rows, common) {
      const { audit, ...report } = toReport(plan, notes, summary)
      const result = { ...report, rows: toRowNumbers(rows), files: common.files }
      return {
        result: { ...result, audit: audit && withoutFindings(audit) },
        report: {
          ...result,
          ...common,
          audit,
          decisions,
          kind,
          file,
          ...(check && { check: toShown(check) }),
          ...(check?.sheets && { sheets: check.sheets }),
          totals: fileTotals
            ? receipt.receipt(fileTotals, sendAgain.length, columnNames(check?.columns))
            : null,
        },
      }
    },
    nextOf: ({ ended, counts, outcomes, rows, first }, isOutward) =>
      importNextSteps({
        plan,
        dataDir: root,
        ended,
        counts,
        outcomes,
        parkedRow: rows.parked?.[0],
        // Of a row that failed: an unknown one has not.
        ...(!isOutward && { origin, message: first.find(({ state }) => state !== 'unknown')?.message }),
      }),
    saysWhy: ({ ended }) => ended?.canary === true,
    withoutContents: ({ totals, check: checked, ...report }) => ({
      ...report,
      ...(checked && { check: { ...checked, columns: [] } }),
      totals: totals && { ...totals, columns: {} },
    }),
    toView: toImportView,
  })
}

const toRowNumbers = (rows: RowTally<{ row: number }>['rows']): ImportReport['rows'] =>
  Object.fromEntries(Object.entries(rows).map(([place, named]) => [place, named.map(({ row }) => row)]))

const toShown = ({ valid, invalid, columns }: FileCheck): NonNullable<FullReport['check']> => ({
  valid,
  invalid,
  columns: columns.map(({ column, field }) => ({ column, field })),
})

/** Why a row is not done, in sentences without values. */
function outwardReason({ row, outcome }: LedgerRow, check: FileCheck | undefined): string {
  const other = check?.duplicates[row]
  if (check && other !== undefined) return sameAs(importKinds[check.kind], other)
  const problem = outcome === 'invalid' ? check?.problems.find((one) => one.row === row) : undefined
  return problem === undefined ? (sentenceFor(outcome) ?? '') : toOutwardRowSentence(problem)
}

function withoutFindings(note: AuditNote): ImportResult['audit'] {
  const { first: _, ...audit } = note
  return audit
}

function toReport(
  plan: ImportPlan,
  { audit, ended, staged, check, skipped }: Partial<ImportNotes>,
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
  const { doubtfulEarlier = 0, resolvedEarlier = 0 } = staged ?? {}
  const inDoubt = counted(doubtfulEarlier, 'done by an earlier run, but in doubt there')
  const resolved = counted(resolvedEarlier, `${resolvedByPerson} in an earlier run`)
  const doubts = staged === undefined ? ['nothing was staged'] : [...unseen, ...inDoubt]
  const reasons = [...(staged === undefined ? [] : proof.reasons), ...doubts, ...resolved]
  const { valid = 0, invalid = 0, totals } = check ?? {}
  return {
    run: plan.run,
    ...(plan.dryRun
      ? {
          summary: [
            `dry run, nothing was sent: ${valid} valid and ${invalid} invalid of ${totals?.changes ?? 0} ${plan.kind}`,
            ...(skipped ? [`${skipped} would be skipped`] : []),
          ].join('; '),
          verdict: 'dryRun',
          reasons: [],
          inDoubt: false,
        }
      : {
          summary: toSummary(plan, summary, reasons, { by: proof.by, ended }),
          verdict: reasons.length === 0 ? proof.verdict : 'unproven',
          reasons,
          inDoubt: proof.inDoubt || doubts.length > 0,
        }),
    by: proof.by,
    ...(ended && { ended }),
    counts,
    audit: audit ?? null,
    outcomes,
  }
}

/** The number of changes staged, but at least as many as the file has. */
function shouldBeStaged({ plan, staged }: { plan: ImportPlan; staged: StagedNote | undefined }): number {
  if (staged === undefined || plan.dryRun) return 0
  return plan.sendAgain.length > 0 ? staged.staged : Math.max(staged.staged, staged.totals.changes)
}

function toSummary(
  { kind }: ImportPlan,
  { counts, outcomes }: ReportSummary,
  reasons: readonly string[],
  { by, ended }: Pick<ImportReport, 'by'> & { ended: EndedNote | undefined },
): string {
  // The reasons have the other places.
  const others = (['rejected', 'skipped'] as const).flatMap((place) =>
    counted(counts[place], countLabels[place]),
  )
  const proof =
    reasons.length === 0
      ? `proven by ${by}`
      : `${ended === undefined ? 'not ended' : 'unproven'}: ${reasons.join('; ')}`
  const why = ended?.why === undefined ? [] : [ended.why]
  const { doneEarlier = 0 } = outcomes
  const earlier = doneEarlier === 0 ? '' : ` (${doneEarlier} by earlier runs)`
  return [`${counts.done} of ${sumOf(counts)} ${kind} done${earlier}`, ...others, proof, ...why].join('; ')
}
