import type { ReportCounts } from '../runs/counts.ts'
import type { Account, AccountTable, Problem } from '../runs/view/view.ts'
import { formatTime } from '../runs/view/format.ts'
import type { Point } from '../runs/view/throughput.ts'
import type { ControlTotals } from './control-totals.ts'
import { runFiles } from './plan.ts'
import type { Decision, EndedNote } from '../runs/run-files.ts'
import { type ChangesVerdict } from '../changes/verdict.ts'
import { type ImportPlan } from './plan.ts'
import { type AuditNote } from './run-files.ts'
import { type Sheet } from './result-sheets.ts'

const mostRows = 50

const files = {
  results: 'every row, with what became of it',
  rejected: 'rejected rows, to be mended and imported again',
  parked: 'rows for a person, with where to look',
} as const

const names: Readonly<Record<keyof ReportCounts, string>> = {
  done: 'done',
  rejected: 'rejected',
  parked: 'for a person',
  unknown: 'unknown',
  staged: 'not sent yet',
  skipped: 'left out',
  notTried: 'not tried',
}

/** An import in words, for the page beside its report: counts and row numbers, no row's contents. */
export function toImportAccount(options: { report: FullReport; points: readonly Point[] }): Account {
  const { report, points } = options
  const { mode, workspace, baseUrl } = report.identity
  const written = (Object.keys(files) as (keyof typeof files)[]).filter((name) => name in report.files)
  return {
    title: `Import of ${report.kind}`,
    run: report.run,
    identity: { mode, workspace, baseUrl },
    verdict: toVerdict(report),
    problems: toProblems(report),
    counts: (Object.keys(names) as (keyof ReportCounts)[]).map((place) => ({
      name: names[place],
      value: report.counts[place],
    })),
    pace: { unit: 'changes closed', points },
    tables: [...toTotals(report.totals), ...toDecisions(report)],
    facts: [
      { name: 'file', value: report.file },
      { name: 'begun', value: formatTime(report.startedAt) },
      ...(report.ended === undefined ? [] : [{ name: 'ended', value: formatTime(report.ended.at) }]),
      { name: 'shown by', value: report.by },
      { name: 'in one sentence', value: report.summary },
    ],
    files: [
      ...written.map((name) => ({ name: runFiles[name], about: files[name] })),
      { name: runFiles.report, about: 'all of this for machines' },
    ],
  }
}

function toVerdict({ verdict, counts, ended }: FullReport): Account['verdict'] {
  if (verdict === 'dryRun')
    return { word: 'dry run', tone: 'neutral', meaning: 'The file was checked. Nothing was sent.' }
  if (ended === undefined)
    return {
      word: 'not ended',
      tone: 'neutral',
      meaning: 'The run goes on, or was cut off: this is how far it came.',
    }
  if (verdict === 'proven' && counts.rejected === 0)
    return { word: 'proven', tone: 'good', meaning: 'Every row is in the service once, by its own word.' }
  if (verdict === 'proven')
    return {
      word: 'proven',
      tone: 'doubtful',
      meaning:
        'What became of every row is known. Rejected rows are not in the service: mend rejected.csv and import it.',
    }
  return {
    word: 'unproven',
    tone: 'doubtful',
    meaning:
      'Of some rows it is not known, or not done, what was asked for. The same import goes on and sends nothing twice.',
  }
}

function toProblems({ reasons, ended, rows, counts, audit }: FullReport): Problem[] {
  const places = (Object.keys(names) as (keyof ReportCounts)[]).filter(
    (place) => place !== 'done' && place !== 'skipped' && (rows[place]?.length ?? 0) > 0,
  )
  return [
    ...(ended?.why === undefined ? [] : [{ what: `It ended early: ${ended.why}.` }]),
    ...reasons.map((reason) => ({ what: `Not proven: ${reason}.` })),
    ...places.map((place) => ({
      what: `${counts[place]} ${names[place]}: rows ${listRows(rows[place] ?? [], counts[place])}.`,
    })),
    ...(audit === null || audit.first.length === 0
      ? []
      : [
          {
            what:
              `The service's list differs from the file in rows ${listRows(audit.first.map(({ row }) => row))}; ` +
              `${runFiles.findings} says how.`,
          },
        ]),
  ]
}

function listRows(rows: readonly number[], all = rows.length): string {
  const shown = rows.slice(0, mostRows).join(', ')
  const more = all - Math.min(rows.length, mostRows)
  return more > 0 ? `${shown} and ${more} more` : shown
}

/** To be held against the sheet's own sums. */
function toTotals(totals: ControlTotals | null): AccountTable[] {
  if (totals === null) return []
  const columns = Object.keys(totals.sums)
  const groups = Object.entries(totals.by?.values ?? {})
  const line = (name: string, changes: number, sums: Readonly<Record<string, string>>) => [
    name,
    changes,
    ...columns.map((column) => sums[column] ?? ''),
  ]
  return [
    {
      title: 'Control totals of the file',
      head: ['', 'changes', ...columns],
      rows: [
        ...groups.map(([value, { changes, sums }]) => line(`${totals.by?.field} ${value}`, changes, sums)),
        line('all', totals.changes, totals.sums),
      ],
    },
  ]
}

function toDecisions({ decisions, resolved }: FullReport): AccountTable[] {
  const rows = [
    ...decisions.map(({ at, about, by, why }) => [`${about}, ${formatTime(at)}`, by, why]),
    ...resolved.map(({ row, state, by, why }) => [`row ${row}: ${state}`, by, why]),
  ]
  return rows.length === 0 ? [] : [{ title: 'What people decided', head: ['what', 'who', 'why'], rows }]
}

/** The whole report on the disk: with what people said and what was asked for. */
export interface FullReport extends ImportReport {
  kind: string
  file: string
  startedAt: string
  identity: ImportPlan['identity']
  totals: ControlTotals | null
  decisions: Decision[]
  resolved: { row: number; by: string; why: string; state: string }[]
}

/** The account of an import, at any moment: for a run that goes on or died it says how far it came. */
export interface ImportReport {
  run: string
  /** One sentence; the first thing the Temporal UI shows of a result. */
  summary: string
  verdict: ChangesVerdict['verdict'] | 'dryRun'
  /** Why it is not proven; empty where it is. */
  reasons: string[]
  by: ChangesVerdict['by']
  /** Absent while the run goes on, or where it died. */
  ended?: EndedNote
  counts: ReportCounts
  files: Partial<Record<Sheet | 'report', string>>
  audit: AuditNote | null
  outcomes: Record<string, number>
  /** Row numbers of what is not well, the first of each; all of them are in the files. */
  rows: Partial<Record<keyof ReportCounts, number[]>>
}

/** The report as a workflow returns it: without the findings, which name fields and values. */
export type ImportResult = Omit<ImportReport, 'audit'> & {
  audit: Omit<NonNullable<ImportReport['audit']>, 'first'> | null
}
