import { type ChangesReport, type FullChangesReport, toChangesView } from '../changes/view.ts'
import { inputCommand } from '../runs/inputs.ts'
import { countLabels, outcomeLabel, type ReportCounts, sumOf } from '../runs/view/counts.ts'
import { formatCount, formatCountOf, formatWere, type Tone } from '../runs/view/format.ts'
import {
  type Count,
  filled,
  type NextStep,
  type Problem,
  sentence,
  strong,
  type Table,
  type View,
} from '../runs/view/view.ts'
import { connector } from '../runs/view/shell.ts'
import { recoveryFiles, recoveryInput } from './input.ts'
import { aboutListValue, type ListValues, toValueTables } from './list-value.ts'
import type { SnapshotNote } from './open.ts'
import type { Preview } from './select.ts'

/** The report of a recovery. */
export interface RecoveryReport extends ChangesReport {
  /**
   * The number of subscriptions that the run only reports and never set out to resume. They do not affect the
   * verdict.
   */
  reported: number
  /** Nothing but subscriptions that need a person keeps the run from being proven: the result of each resume was seen. */
  resultsSeen: boolean
  /** The number of each outcome, by reason. */
  byReason: Record<string, Record<string, number>>
  /** What the recovered ones cost per cycle by list price; `preview` has that of those to resume. */
  recoveredValue: ListValues
  /** Reasons of which all that went first failed, and how many others were not tried. */
  failedCanaries: { reason: string; notTried: number }[]
  /** What only a person can do, one sentence each. */
  needsPerson: string[]
  snapshot: SnapshotNote | null
  preview: Preview | null
  /** The input of a run that continues with what a limit left over; absent if nothing was left over. */
  continueWith?: Readonly<Record<string, unknown>>
  audit: null
  /** Unfinished rows, the first few of each state; recovery.csv has all of them. */
  rows: Partial<Record<keyof ReportCounts, NamedRow[]>>
}

export interface NamedRow {
  row: number
  subscription: string
}

/** The complete report on disk, including decisions. */
export interface FullReport extends RecoveryReport, FullChangesReport {
  /** The first subscriptions of each state that needs attention, with what the service said of them. */
  first: (NamedRow & FullChangesReport['first'][number])[]
  /** The first subscriptions in their cool-down, and until when. */
  coolingDown: { subscription: string; message: string }[]
}

/** The view of a recovery; see `toChangesView`. No customers. */
export function toRecoveryView(report: FullReport): View {
  const { files, preview, verdict, next, byReason, first, counts, reported, resultsSeen } = report
  const isDry = verdict === 'dryRun'
  const toResume = preview?.toResume ?? 0
  const firstRows = first.map(({ row, subscription, state, message }) => [
    String(row),
    subscription,
    countLabels[state],
    message,
  ])
  return toChangesView(report, {
    title: 'Recovery of subscriptions',
    unit: 'subscriptions',
    headline: isDry
      ? `${formatCountOf(toResume, 'subscriptions')} would be resumed`
      : `${formatCount(counts.done)} of ${formatCount(sumOf(counts) - reported)} subscriptions recovered`,
    meanings: {
      dryRun: 'The list was read. Nothing was resumed, and nothing is proven.',
      proven: 'The result of each subscription to be resumed was seen, and the list was read completely.',
      unproven: resultsSeen
        ? 'The result of each resume was seen. Some subscriptions need a person.'
        : 'Some subscriptions were not resumed, or their outcome was not seen.',
    },
    problems: toProblems(report),
    covered: resultsSeen ? report.reasons : [],
    ...(resultsSeen && { word: 'needs a person' }),
    ...(Object.keys(byReason).length > 0 && { counts: toOutcomeCounts(report) }),
    controls:
      next.length === 0
        ? []
        : [sentence`In the Temporal UI, ${strong('Start Workflow Like This One')} runs it again.`],
    tables: [
      toReasons(byReason),
      ...filled({ title: 'Not resumed', head: ['row', 'subscription', 'state', 'reason'], rows: firstRows }),
      ...(preview === null
        ? []
        : isDry
          ? toPreviewTables(preview)
          : toValueTables(preview.listValue, report.recoveredValue)),
    ],
    facts: preview === null ? [] : [aboutListValue],
    files:
      files.results === undefined
        ? []
        : [{ name: recoveryFiles.results, about: 'every subscription with its outcome' }],
  })
}

function toProblems({ needsPerson, outcomes, failedCanaries, coolingDown: named }: FullReport): Problem[] {
  const { coolingDown = 0 } = outcomes
  const details = named.map(({ subscription, message }) => `${subscription}: ${message}`)
  return [
    ...failedCanaries.map(({ reason, notTried }) => ({
      text: `The canary failed: all that went first for ${reason} failed, so ${notTried === 1 ? '1 other was' : `${notTried} others were`} not tried.`,
    })),
    ...needsPerson.map((text) => ({ text: `${text}.` })),
    ...(coolingDown === 0
      ? []
      : [{ text: `${coolingDown} resumed recently and left alone; recovery.csv says until when.`, details }]),
  ]
}

const tones: Readonly<Record<string, Tone>> = {
  recovered: 'good',
  alreadyFine: 'good',
  wouldResume: 'good',
  attemptsUsedUp: 'doubtful',
  fellBack: 'doubtful',
  noEffect: 'doubtful',
  unknown: 'doubtful',
  missing: 'doubtful',
  notFound: 'doubtful',
  refused: 'bad',
}

function toOutcomeCounts({ byReason, outcomes }: FullReport): Count[] {
  const totals = new Map(Object.entries(outcomes).filter(([outcome]) => outcome === 'missing'))
  for (const [outcome, count] of Object.values(byReason).flatMap(Object.entries))
    totals.set(outcome, (totals.get(outcome) ?? 0) + count)
  return Array.from(totals, ([outcome, value]) => ({
    name: outcomeLabel(outcome),
    value,
    tone: tones[outcome] ?? 'neutral',
  }))
}

/** The table of reasons by outcome. */
function toReasons(byReason: FullReport['byReason']): Table {
  const outcomes = [...new Set(Object.values(byReason).flatMap(Object.keys))]
  return {
    title: 'By reason',
    head: ['reason', ...outcomes.map(outcomeLabel)],
    tones: [undefined, ...outcomes.map((outcome) => tones[outcome] ?? 'neutral')],
    rows: Object.entries(byReason).map(([reason, counts]) => [
      reason || 'no reason',
      ...outcomes.map((outcome) => counts[outcome] ?? ''),
    ]),
  }
}

/** The tables of what would be resumed and how much is charged immediately. */
export function toPreviewTables(preview: Preview): Table[] {
  const { byReason, toResume, byScheme, byNextBilling, today, needsPerson, listValue } = preview
  // Those have a table of their own.
  const { needsPerson: _, ...notResumed } = preview.notResumed
  const table = (title: string, counts: Readonly<Record<string, number>>): Table => ({
    title,
    head: ['', 'subscriptions'],
    tones: [undefined, 'neutral'],
    rows: Object.entries(counts)
      .filter(([, count]) => count > 0)
      .map(([name, count]) => [outcomeLabel(name) || 'no reason', count]),
  })
  return [
    table('To resume, by reason', { ...byReason, all: toResume }),
    ...toValueTables(listValue),
    table('By collection_scheme (charge_payment charges at once)', byScheme),
    table(`By next_billing (today is ${today}; what a resume without it bills is not documented)`, {
      ...byNextBilling,
    }),
    table('Needs a person, by reason', needsPerson),
    table('Not resumed', notResumed),
  ].flatMap(filled)
}

type Input = Readonly<Record<string, unknown>>

/** The next steps after a recovery, or while it is active, with complete commands. */
export function recoveryNextSteps(
  report: Pick<
    RecoveryReport,
    'run' | 'verdict' | 'ended' | 'counts' | 'continueWith' | 'snapshot' | 'failedCanaries'
  >,
  asked: Input,
): NextStep[] {
  const { run, verdict, ended, counts, continueWith, snapshot, failedCanaries } = report
  if (verdict === 'dryRun')
    return [{ text: 'to resume them', command: recoverCommand({ ...asked, dryRun: false }) }]
  if (ended === undefined) return [{ text: 'to follow the run', command: connector`run watch ${run}` }]
  // The same command would resume the same ones first, and they would fail again.
  const causes = failedCanaries.map(({ reason, notTried }) => ({
    text: `find out in the service why all that went first for ${reason} failed, then recover the other ${notTried}`,
  }))
  const beyond =
    counts.notTried + counts.staged - failedCanaries.reduce((sum, { notTried }) => sum + notTried, 0)
  if (continueWith !== undefined)
    return [
      ...causes,
      {
        text: `${reasonOf(beyond, snapshot?.capped === true)}; to continue`,
        command: recoverCommand(continueWith),
      },
    ]
  if (causes.length > 0) return causes
  if (verdict !== 'unproven') return []
  const command = recoverCommand(asked)
  if (counts.unknown > 0)
    return [{ text: `another recovery looks up the ${counts.unknown} unknown first`, command }]
  // What is parked needs a person: the report says what to do, and another recovery would not resume it.
  return snapshot?.proven === false || ended.how === 'failed' ? [{ text: 'to try again', command }] : []
}

function reasonOf(left: number, capped: boolean): string {
  if (capped) return 'the list has more pages than were read'
  return left === 0 ? 'some were not tried' : `${formatWere(left)} not tried`
}

/** Whether somebody is there, the next command knows itself. */
const recoverCommand = (input: Input): string =>
  inputCommand(['recover'], recoveryInput, { ...input, attended: undefined })
