import { join } from 'node:path'
import type { Identity } from '../runs/identity.ts'
import { reportFiles, type Decision, type EndedNote } from '../runs/run-notes.ts'
import type { ReportCounts } from '../runs/view/counts.ts'
import { filled, type NextStep, pageName, type Table, toCounts, type View } from '../runs/view/view.ts'
import type { LedgerRow } from '../state/ledger/row.ts'
import type { ChangeState } from '../state/schema.ts'
import { sentenceFor } from './outcomes.ts'
import type { ChangesVerdict } from './verdict.ts'

/** What the report of every write run has, at any time; for an active or crashed run it shows the progress. */
export interface ChangesReport {
  run: string
  /** One sentence; the Temporal UI shows it first in a result. */
  summary: string
  verdict: ChangesVerdict['verdict'] | 'dryRun'
  /** Why it is not proven; empty if it is. */
  reasons: string[]
  inDoubt: ChangesVerdict['inDoubt']
  by: ChangesVerdict['by']
  /** Absent while the run is active, or if it crashed. */
  ended?: EndedNote
  counts: ReportCounts
  /** How many rows have each outcome. */
  outcomes: Record<string, number>
  /** The files that people read, by name. */
  files: Partial<Record<string, string>>
}

/** The report on disk, which has more than the workflow's result. */
export interface FullChangesReport extends ChangesReport {
  /** What people decided, corrected decisions included. */
  decisions: Decision[]
  startedAt: string
  identity: Identity
  /** The next steps for a person. */
  next: NextStep[]
  /** The folder of the report and the sheets. */
  folder: string
  /** The first rows of each state that needs attention, with why. */
  first: { row: number; state: keyof ReportCounts; message: string }[]
}

type Own = Required<Pick<View, 'title' | 'unit' | 'problems' | 'controls' | 'tables' | 'files'>> & {
  headline: string
  /** The word for the outcome. Default: the verdict. */
  word?: string
  /** The reasons that the job's own problems say, too. */
  covered: readonly string[]
  /** What each verdict means for someone who has not read the manual. */
  meanings: Readonly<Record<ChangesReport['verdict'], string>>
} & Pick<View, 'counts' | 'facts' | 'evidence' | 'pageTables'>

/**
 * The view of a write run for its page, the Temporal UI and the terminal: counts and row numbers, no contents. The job
 * adds what is its own.
 */
export function toChangesView(report: FullChangesReport, { meanings, headline, word, ...own }: Own): View {
  const { run, summary, verdict, reasons, ended, counts, startedAt, next, folder } = report
  const { mode, workspace, baseUrl } = report.identity
  const isActive = verdict !== 'dryRun' && ended === undefined
  const decided = toDecisions(report)
  return {
    title: own.title,
    run,
    identity: { mode, workspace, baseUrl },
    verdict: isActive
      ? { word: 'not ended', tone: 'neutral', headline, meaning: 'The run is still active or was cut off.' }
      : { ...words[verdict], ...(word && { word }), headline, meaning: meanings[verdict] },
    summary,
    problems: [
      ...(ended?.why === undefined ? [] : [{ text: `The run ended early: ${ended.why}.` }]),
      ...reasons
        .filter((reason) => !own.covered.includes(reason))
        .map((reason) => ({ text: `${ended === undefined ? 'Not proven yet' : 'Not proven'}: ${reason}.` })),
      ...own.problems,
    ],
    next,
    controls: own.controls,
    counts: own.counts ?? toCounts(counts),
    unit: own.unit,
    tables: [...own.tables, ...decided],
    ...(own.pageTables && { pageTables: [...own.pageTables, ...decided] }),
    facts: [
      ...(own.facts ?? []),
      { name: 'Started', value: { time: startedAt } },
      ...(ended === undefined ? [] : [{ name: 'Ended', value: { time: ended.at } }]),
    ],
    ...(own.evidence && { evidence: own.evidence }),
    files: [...own.files, { name: reportFiles.report, about: 'the same for programs' }],
    folder,
    page: join(folder, pageName),
  }
}

const words = {
  dryRun: { word: 'dry run', tone: 'neutral' },
  proven: { word: 'proven', tone: 'good' },
  unproven: { word: 'unproven', tone: 'doubtful' },
} as const

const explained: readonly ChangeState[] = ['rejected', 'unknown', 'parked', 'dropped']

/** Why a row is not done, with the person who resolved it, on one line. */
export const explain = ({
  state,
  outcome,
  error,
  resolvedBy,
  resolvedWhy,
}: Pick<LedgerRow, 'state' | 'outcome' | 'error' | 'resolvedBy' | 'resolvedWhy'>): string | null =>
  [
    ...[error ?? (explained.includes(state) ? sentenceFor(outcome) : undefined) ?? []].flat(),
    ...(resolvedBy === null ? [] : [`${resolvedBy}: ${resolvedWhy ?? ''}`]),
  ].join('; ') || null

function toDecisions({ decisions }: Pick<FullChangesReport, 'decisions'>): Table[] {
  const rows = decisions.map((one) => [aboutOf(one), one.by, { time: one.at }, one.why])
  return filled({ title: 'Decisions', head: ['about', 'who', 'when', 'why'], rows })
}

function aboutOf({ about, row, exists, confirmed, absent }: Decision): string {
  if (about !== 'row') return about
  if (exists === undefined) return `row ${row}: ${absent === true ? 'does not exist, sent again' : 'dropped'}`
  return `row ${row}: exists as ${exists}, ${confirmed === true ? 'confirmed by the service' : 'not confirmed by the service'}`
}
