import type { ReportCounts } from '../runs/counts.ts'
import type { Account, AccountTable } from '../runs/view/view.ts'
import { formatTime } from '../runs/view/format.ts'
import type { Point } from '../runs/view/throughput.ts'
import { recoveryFiles } from './plan.ts'
import type { Decision, EndedNote } from '../runs/run-files.ts'
import { type ChangesVerdict } from '../changes/verdict.ts'
import type { Preview } from './preview.ts'
import { type RecoveryPlan } from './plan.ts'
import { type SnapshotNote } from './run-files.ts'

const names: Readonly<Record<keyof ReportCounts, string>> = {
  done: 'recovered, or already fine',
  parked: 'for a person',
  rejected: 'refused',
  unknown: 'unknown',
  staged: 'not resumed yet',
  skipped: 'left out',
  notTried: 'not tried',
}

/** A recovery in words, for the page beside its report: counts, no customer. */
export function toRecoveryAccount(options: { report: FullReport; points: readonly Point[] }): Account {
  const { report, points } = options
  const { mode, workspace, baseUrl } = report.identity
  const { ended, continueWith, files } = report
  return {
    title: 'Recovery of subscriptions',
    run: report.run,
    identity: { mode, workspace, baseUrl },
    verdict: toVerdict(report),
    problems: [
      ...(ended?.why === undefined ? [] : [{ what: `It ended early: ${ended.why}.` }]),
      ...report.reasons.map((reason) => ({ what: `Not proven: ${reason}.` })),
      ...report.needsPerson.map((what) => ({ what: `${what}.` })),
      ...toSkipped(report),
    ],
    counts: (Object.keys(names) as (keyof ReportCounts)[]).map((place) => ({
      name: names[place],
      value: report.counts[place],
    })),
    pace: { unit: 'resumes closed', points },
    tables: [...toReasons(report), ...toDecisions(report)],
    facts: [
      { name: 'begun', value: formatTime(report.startedAt) },
      ...(ended === undefined ? [] : [{ name: 'ended', value: formatTime(ended.at) }]),
      { name: 'in one sentence', value: report.summary },
      ...(continueWith === undefined ? [] : [{ name: 'goes on with', value: JSON.stringify(continueWith) }]),
    ],
    files: [
      ...(files.results === undefined
        ? []
        : [{ name: recoveryFiles.results, about: 'every subscription, with what became of it' }]),
      { name: recoveryFiles.report, about: 'all of this for machines' },
    ],
  }
}

function toVerdict({ verdict, ended, counts }: FullReport): Account['verdict'] {
  if (verdict === 'dryRun')
    return { word: 'dry run', tone: 'neutral', meaning: 'The list was read. Nothing was resumed.' }
  if (ended === undefined) {
    const meaning = 'The run goes on, or was cut off: this is how far it came.'
    return { word: 'not ended', tone: 'neutral', meaning }
  }
  if (verdict === 'unproven') {
    const meaning =
      'Of some subscriptions it was not seen, or not done, what was asked for. Run it again: it looks first.'
    return { word: 'unproven', tone: 'doubtful', meaning }
  }
  const isWhole = counts.parked + counts.rejected === 0
  const meaning = isWhole
    ? 'Each subscription that was resumed was seen after it, and the list was seen whole.'
    : 'What became of each subscription that was resumed is known. Some are left for a person.'
  return { word: 'proven', tone: isWhole ? 'good' : 'doubtful', meaning }
}

function toSkipped({ outcomes }: FullReport): Account['problems'] {
  const { coolingDown = 0 } = outcomes
  if (coolingDown === 0) return []
  const were = coolingDown === 1 ? 'was' : 'were'
  return [{ what: `${coolingDown} ${were} resumed not long ago and ${were} neither resumed nor looked at.` }]
}

function toReasons({ byReason }: FullReport): AccountTable[] {
  const rows = Object.entries(byReason).flatMap(([reason, outcomes]) =>
    Object.entries(outcomes).map(([outcome, number]) => [reason || 'without a reason', outcome, number]),
  )
  return rows.length === 0 ? [] : [{ title: 'By reason', head: ['reason', 'outcome', 'number'], rows }]
}

function toDecisions({ decisions, resolved }: FullReport): AccountTable[] {
  const rows = [
    ...decisions.map(({ at, about, by, why }) => [`${about}, ${formatTime(at)}`, by, why]),
    ...resolved.map(({ row, state, by, why }) => [`row ${row}: ${state}`, by, why]),
  ]
  return rows.length === 0 ? [] : [{ title: 'What people decided', head: ['what', 'who', 'why'], rows }]
}

/** The whole report on the disk: with what people said. */
export interface FullReport extends RecoveryReport {
  startedAt: string
  identity: RecoveryPlan['identity']
  decisions: Decision[]
  resolved: { row: number; by: string; why: string; state: string }[]
}

/** The account of a recovery, at any moment: for one that goes on or died it says how far it came. */
export interface RecoveryReport {
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
  outcomes: Record<string, number>
  /** How many of each reason ended how. */
  byReason: Record<string, Record<string, number>>
  /** What is left for a person, in words. */
  needsPerson: string[]
  snapshot: SnapshotNote | null
  preview: Preview | null
  /** The input that goes on with what a bound left out; absent where nothing was. */
  continueWith?: Readonly<Record<string, unknown>>
  files: Partial<Record<'results' | 'report', string>>
  audit: null
  /** What is not well, the first of each; all of it is in recovery.csv. */
  rows: Partial<Record<keyof ReportCounts, { row: number; subscription: string }[]>>
}
