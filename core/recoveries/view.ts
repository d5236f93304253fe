import { join } from 'node:path'
import type { ChangesVerdict } from '../changes/verdict.ts'
import { type Decided, toDecisions } from '../changes/decisions.ts'
import type { EndedNote } from '../runs/run-files.ts'
import { countLabels, outcomeLabel, type ReportCounts } from '../runs/view/counts.ts'
import { sentence, strong } from '../runs/view/sentence.ts'
import { type NextStep, pageName, type Problem, type Table, toCounts, type View } from '../runs/view/view.ts'
import { recoveryFiles, type RecoveryPlan } from './plan.ts'
import type { Preview } from './preview.ts'
import type { SnapshotNote } from './run-files.ts'

/** The view of a recovery, for its HTML page, the Temporal UI and the terminal: counts only, no customers. */
export function toRecoveryView(report: FullReport): View {
  const { run, identity, ended, files, preview, verdict, folder } = report
  const { mode, workspace, baseUrl } = identity
  return {
    title: 'Recovery of subscriptions',
    run,
    identity: { mode, workspace, baseUrl },
    verdict: toVerdict(report),
    summary: report.summary,
    problems: toProblems(report),
    next: report.next,
    controls:
      report.next.length === 0
        ? []
        : [sentence`In the Temporal UI, ${strong('Start Workflow Like This One')} runs it again.`],
    counts: toCounts(report.counts),
    unit: 'subscriptions',
    tables: [
      toReasons(report.byReason),
      ...toFirst(report),
      ...(verdict === 'dryRun' && preview !== null ? toPreviewTables(preview) : []),
      ...toDecisions(report),
    ],
    facts: [
      { name: 'started', value: { time: report.startedAt } },
      ...(ended === undefined ? [] : [{ name: 'ended', value: { time: ended.at } }]),
    ],
    files: [
      ...(files.results === undefined
        ? []
        : [{ name: recoveryFiles.results, about: 'every subscription with its outcome' }]),
      { name: recoveryFiles.report, about: 'this report for programs' },
    ],
    folder,
    page: join(folder, pageName),
  }
}

function toVerdict({ verdict, ended }: FullReport): NonNullable<View['verdict']> {
  if (verdict === 'dryRun')
    return {
      word: 'dry run',
      tone: 'neutral',
      meaning: 'The list was read. Nothing was resumed, and nothing is proven.',
    }
  if (ended === undefined)
    return { word: 'not ended', tone: 'neutral', meaning: 'The run is still active or was cut off.' }
  if (verdict === 'unproven') {
    const meaning = 'Some subscriptions were not resumed, or their outcome was not seen.'
    return { word: 'unproven', tone: 'doubtful', meaning }
  }
  const meaning = 'The result of each subscription to be resumed was seen, and the list was read completely.'
  return { word: 'proven', tone: 'good', meaning }
}

/** The first subscriptions that were not recovered, with what the service said of them. */
function toFirst({ first }: FullReport): Table[] {
  const rows = first.map(({ row, subscription, state, message }) => [
    String(row),
    subscription,
    countLabels[state],
    message,
  ])
  return rows.length === 0 ? [] : [{ title: 'Why', head: ['row', 'subscription', 'state', 'reason'], rows }]
}

function toProblems(report: FullReport): Problem[] {
  const { ended, reasons, needsPerson, outcomes, failedCanaries, coolingDown: named } = report
  const { coolingDown = 0 } = outcomes
  return [
    ...(ended?.why === undefined ? [] : [{ text: `The run ended early: ${ended.why}.` }]),
    ...failedCanaries.map(({ reason, notTried }) => ({
      text: `The canary failed: all that went first for ${reason} failed, so ${notTried} others were not tried.`,
    })),
    ...reasons.map((reason) => ({
      text: `${ended === undefined ? 'Not proven yet' : 'Not proven'}: ${reason}.`,
    })),
    ...needsPerson.map((text) => ({ text: `Needs a person: ${text}.` })),
    ...(coolingDown === 0
      ? []
      : [
          {
            text: `${coolingDown} resumed recently and left alone; recovery.csv says until when.`,
            details: named.map(({ subscription, message }) => `${subscription}: ${message}`),
          },
        ]),
  ]
}

/** The table of reasons by outcome. */
function toReasons(byReason: FullReport['byReason']): Table {
  const outcomes = [...new Set(Object.values(byReason).flatMap(Object.keys))]
  return {
    title: 'By reason',
    head: ['reason', ...outcomes.map(outcomeLabel)],
    rows: Object.entries(byReason).map(([reason, counts]) => [
      reason || 'no reason',
      ...outcomes.map((outcome) => counts[outcome] ?? ''),
    ]),
  }
}

/** The tables of what would be resumed and how much is charged immediately. */
export function toPreviewTables(preview: Preview): Table[] {
  const { byReason, toResume, byScheme, byNextBilling, today, needsPerson, notResumed } = preview
  const table = (title: string, counts: Readonly<Record<string, number>>): Table => ({
    title,
    head: ['', 'subscriptions'],
    rows: Object.entries(counts)
      .filter(([, count]) => count > 0)
      .map(([name, count]) => [outcomeLabel(name) || 'no reason', count]),
  })
  return [
    table('To resume, by reason', { ...byReason, all: toResume }),
    table('By collection_scheme (charge_payment charges at once)', byScheme),
    table(`By next_billing (today is ${today}; what a resume without it bills is not documented)`, {
      ...byNextBilling,
    }),
    table('Needs a person, by reason', needsPerson),
    table('Not resumed', notResumed),
  ].filter(({ rows }) => rows.length > 0)
}

/** The complete report on disk, including decisions. */
export interface FullReport extends RecoveryReport, Decided {
  startedAt: string
  identity: RecoveryPlan['identity']
  /** What a person can do next. */
  next: NextStep[]
  /** The first subscriptions of each state that needs attention, with what the service said of them. */
  first: { row: number; subscription: string; state: keyof ReportCounts; message: string }[]
  /** The first subscriptions in their cool-down, and until when. */
  coolingDown: { subscription: string; message: string }[]
  /** The folder of report and recovery.csv. */
  folder: string
}

/** The report of a recovery. For a run that is active or has died, it shows the progress so far. */
export interface RecoveryReport {
  run: string
  /** One sentence; the first thing the Temporal UI shows of a result. */
  summary: string
  verdict: ChangesVerdict['verdict'] | 'dryRun'
  /** Why the run is not proven; empty if it is. */
  reasons: string[]
  by: ChangesVerdict['by']
  /** Absent while the run is active and after it died. */
  ended?: EndedNote
  counts: ReportCounts
  outcomes: Record<string, number>
  /**
   * The number of subscriptions that the run only reports and never set out to resume. They do not affect the
   * verdict.
   */
  reported: number
  /** The number of each outcome, by reason. */
  byReason: Record<string, Record<string, number>>
  /** Reasons of which all that went first failed, and how many others were not tried. */
  failedCanaries: { reason: string; notTried: number }[]
  /** What only a person can do, one sentence each. */
  needsPerson: string[]
  snapshot: SnapshotNote | null
  preview: Preview | null
  /** The input of a run that continues with what a limit left over; absent if nothing was left over. */
  continueWith?: Readonly<Record<string, unknown>>
  files: Partial<Record<'results' | 'report', string>>
  audit: null
  /** Unfinished rows, the first few of each state; recovery.csv has all of them. */
  rows: Partial<Record<keyof ReportCounts, { row: number; subscription: string }[]>>
}
