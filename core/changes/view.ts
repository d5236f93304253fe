import { join } from 'node:path'
import type { Identity } from '../runs/identity.ts'
import { changeRunFiles, type EndedNote } from '../runs/run-files.ts'
import type { ReportCounts } from '../runs/view/counts.ts'
import { type NextStep, pageName, toCounts, type View } from '../runs/view/view.ts'
import { type Decided, toDecisions } from './decisions.ts'
import type { ChangesVerdict } from './verdict.ts'

/** What the report of every write run has, at any time; for an active or crashed run it shows the progress. */
export interface ChangesReport {
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
  /** How many rows have each outcome. */
  outcomes: Record<string, number>
}

/** What a report on disk has besides. */
export interface FullChangesReport extends ChangesReport, Decided {
  startedAt: string
  identity: Identity
  /** What a person does next. */
  next: NextStep[]
  /** The folder of the report and the sheets. */
  folder: string
}

type Own = Required<Pick<View, 'title' | 'unit' | 'problems' | 'controls' | 'tables' | 'files'>> & {
  /** What each verdict means for someone who has not read the manual. */
  meanings: Readonly<Record<ChangesReport['verdict'], string>>
  facts?: NonNullable<View['facts']>
}

/**
 * The view of a write run for its page, the Temporal UI and the terminal: counts and row numbers, no contents. The job
 * adds what is its own.
 */
export function toChangesView(report: FullChangesReport, { meanings, ...own }: Own): View {
  const { run, summary, verdict, reasons, ended, counts, startedAt, next, folder } = report
  const { mode, workspace, baseUrl } = report.identity
  const isActive = verdict !== 'dryRun' && ended === undefined
  return {
    title: own.title,
    run,
    identity: { mode, workspace, baseUrl },
    verdict: isActive
      ? { word: 'not ended', tone: 'neutral', meaning: 'The run is still active or was cut off.' }
      : { ...words[verdict], meaning: meanings[verdict] },
    summary,
    problems: [
      ...(ended?.why === undefined ? [] : [{ text: `The run ended early: ${ended.why}.` }]),
      ...reasons.map((reason) => ({
        text: `${ended === undefined ? 'Not proven yet' : 'Not proven'}: ${reason}.`,
      })),
      ...own.problems,
    ],
    next,
    controls: own.controls,
    counts: toCounts(counts),
    unit: own.unit,
    tables: [...own.tables, ...toDecisions(report)],
    facts: [
      ...(own.facts ?? []),
      { name: 'started', value: { time: startedAt } },
      ...(ended === undefined ? [] : [{ name: 'ended', value: { time: ended.at } }]),
    ],
    files: [...own.files, { name: changeRunFiles.report, about: 'this report for programs' }],
    folder,
    page: join(folder, pageName),
  }
}

const words = {
  dryRun: { word: 'dry run', tone: 'neutral' },
  proven: { word: 'proven', tone: 'good' },
  unproven: { word: 'unproven', tone: 'doubtful' },
} as const
