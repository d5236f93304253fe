import { join } from 'node:path'
import { countLabels, places, type ReportCounts } from '../runs/view/counts.ts'
import { sentence, strong } from '../runs/view/sentence.ts'
import { type NextStep, pageName, type Problem, type Table, toCounts, type View } from '../runs/view/view.ts'
import type { Mapping } from './mapping/mapping.ts'
import { runFiles, type ImportPlan } from './plan.ts'
import { type Decided, toDecisions } from '../changes/decisions.ts'
import type { EndedNote } from '../runs/run-files.ts'
import type { ChangesVerdict } from '../changes/verdict.ts'
import type { AuditNote } from './run-files.ts'
import { type Receipt, toReceiptTables } from './receipt.ts'
import type { Sheet } from './result-sheets.ts'

const mostRows = 50

const files = {
  results: 'every row with its outcome',
  rejected: 'rejected rows, to be fixed and imported again',
  parked: 'rows that need a person, with where to look',
} as const

/**
 * Builds the view of an import for its page, the Temporal UI and the terminal: counts and row numbers, no
 * row contents.
 */
export function toImportView(report: FullReport): View {
  const { run, kind, identity, counts, totals, ended, folder } = report
  const { mode, workspace, baseUrl } = identity
  const written = (Object.keys(files) as (keyof typeof files)[]).filter((name) => name in report.files)
  return {
    title: `Import of ${kind}`,
    run,
    identity: { mode, workspace, baseUrl },
    verdict: toVerdict(report),
    summary: report.summary,
    problems: toProblems(report),
    next: report.next,
    controls:
      counts.staged + counts.notTried + counts.unknown === 0
        ? []
        : [
            sentence`In the Temporal UI, ${strong('Start Workflow Like This One')} resumes with the remaining rows.`,
          ],
    counts: toCounts(counts),
    unit: 'rows',
    tables: [...toReceiptTables(totals), ...toFirstRows(report), ...toDecisions(report)],
    facts: [
      { name: 'file', value: report.file },
      ...sheetsNotRead(report.sheets).map((value) => ({ name: 'sheet', value })),
      { name: 'started', value: { time: report.startedAt } },
      ...(ended === undefined ? [] : [{ name: 'ended', value: { time: ended.at } }]),
      ...(report.verdict === 'dryRun' ? [] : [{ name: 'proven by', value: report.by }]),
    ],
    files: [
      ...written.map((name) => ({ name: runFiles[name], about: files[name] })),
      { name: runFiles.report, about: 'this report for programs' },
    ],
    folder,
    page: join(folder, pageName),
  }
}

/** A sentence for each workbook that has more sheets than the one that is read. */
export const sheetsNotRead = (sheets: Mapping['sheets'] = []): string[] =>
  sheets.flatMap(({ role, file, read, unread }) => {
    if (unread.length === 0) return []
    const others = `${unread.slice(0, -1).join(', ')}${unread.length === 1 ? '' : ' and '}${unread.at(-1)}`
    const advice = role === 'file' ? 'Choose one with --sheet.' : 'Put the right one first.'
    return [
      `${file}: the sheet ${read} is read; ${others} ${unread.length === 1 ? 'is' : 'are'} not. ${advice}`,
    ]
  })

function toVerdict({ verdict, counts, ended }: FullReport): NonNullable<View['verdict']> {
  if (verdict === 'dryRun')
    return {
      word: 'dry run',
      tone: 'neutral',
      meaning: 'The file was checked. Nothing was sent, and nothing is proven.',
    }
  if (ended === undefined)
    return { word: 'not ended', tone: 'neutral', meaning: 'The run is still active or was cut off.' }
  if (verdict === 'proven') {
    const rejected = counts.rejected === 0 ? '' : ' Rejected rows are not in the service.'
    return { word: 'proven', tone: 'good', meaning: `The outcome of every row is known.${rejected}` }
  }
  return {
    word: 'unproven',
    tone: 'doubtful',
    meaning: 'The outcome of some rows is not known, or they were not done. Nothing is ever sent twice.',
  }
}

function toProblems({ reasons, ended, rows, counts, audit }: FullReport): Problem[] {
  const open = places.filter(
    (place) => place !== 'done' && place !== 'skipped' && (rows[place]?.length ?? 0) > 0,
  )
  return [
    ...(ended?.why === undefined ? [] : [{ text: `The run ended early: ${ended.why}.` }]),
    ...reasons.map((reason) => ({
      text: `${ended === undefined ? 'Not proven yet' : 'Not proven'}: ${reason}.`,
    })),
    ...open.map((place) => ({
      text: `${counts[place]} ${countLabels[place]}: ${counts[place] === 1 ? 'row' : 'rows'} ${listRows(rows[place] ?? [], counts[place])}.`,
    })),
    ...(audit === null || audit.first.length === 0
      ? []
      : [
          {
            text:
              `The service's list differs from the file in rows ${listRows(audit.first.map(({ row }) => row))}; ` +
              `see ${runFiles.findings}.`,
          },
        ]),
  ]
}

/** The first rows of each state that needs attention, with what the service said of them. */
function toFirstRows({ first, counts }: FullReport): Table[] {
  const rows = problems.flatMap((state) => {
    const shown = first.filter((one) => one.state === state)
    const more = counts[state] - shown.length
    return [
      ...shown.map(({ row, message }) => [String(row), countLabels[state], message]),
      // None are listed of rows that a restored ledger lacks, and no file has them.
      ...(shown.length > 0 && more > 0
        ? [['', countLabels[state], `and ${more} more in ${sheetOf[state]}`]]
        : []),
    ]
  })
  return rows.length === 0 ? [] : [{ title: 'Why', head: ['row', 'state', 'reason'], rows }]
}

/** The states that need attention, and the sheet with all rows of each. */
const sheetOf = { rejected: runFiles.rejected, parked: runFiles.parked, unknown: runFiles.results } as const

export const problems = Object.keys(sheetOf) as (keyof typeof sheetOf)[]
export const isProblem = (place: keyof ReportCounts): place is keyof typeof sheetOf => place in sheetOf

function listRows(rows: readonly number[], all = rows.length): string {
  const shown = rows.slice(0, mostRows).join(', ')
  const more = all - Math.min(rows.length, mostRows)
  return more > 0 ? `${shown} and ${more} more` : shown
}

/** The complete report on disk, with decisions and the request. */
export interface FullReport extends ImportReport, Decided {
  kind: string
  file: string
  sheets?: Mapping['sheets']
  startedAt: string
  identity: ImportPlan['identity']
  totals: Receipt | null
  /** The first rows of each state that needs attention, with what the service said of them; on disk only after a failed canary. */
  first: { row: number; state: keyof typeof sheetOf; message: string }[]
  /** What a person does next. */
  next: NextStep[]
  /** The folder of the report and result sheets. */
  folder: string
}

/** The report of an import at any time; for an active or crashed run it shows the progress. */
export interface ImportReport {
  run: string
  /** One sentence; the Temporal UI shows it first in a result. */
  summary: string
  verdict: ChangesVerdict['verdict'] | 'dryRun'
  /** Why it is not proven; empty if it is. */
  reasons: string[]
  by: ChangesVerdict['by']
  /** Absent while the run is active, or if it crashed. */
  ended?: EndedNote
  counts: ReportCounts
  files: Partial<Record<Sheet | 'report', string>>
  audit: AuditNote | null
  outcomes: Record<string, number>
  /** The first row numbers not done, by state; the files have all of them. */
  rows: Partial<Record<keyof ReportCounts, number[]>>
}

/** The report as a workflow returns it: without the findings, which name fields and values. */
export type ImportResult = Omit<ImportReport, 'audit'> & {
  audit: Omit<NonNullable<ImportReport['audit']>, 'first'> | null
}
