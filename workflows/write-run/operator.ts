import {
  CancellationScope,
  allHandlersFinished,
  condition,
  defineQuery,
  defineUpdate,
  proxyActivities,
  setHandler,
} from '@temporalio/workflow'
import type { Activities } from '../../activities/index.ts'
import type { RunRef } from '../../core/runs/known-run.ts'
import type { ReportCounts } from '../../core/runs/counts.ts'
import type { Decision } from '../../core/runs/run-files.ts'
import { shell } from '../../core/runs/view/shell.ts'
import { operating } from '../run/activity-options.ts'
import type { RunControl } from '../run/control.ts'
import type { Notifier } from '../run/notify.ts'
import { refOf } from '../run/ref-of.ts'
import { throwRootFailure } from '../run/unwrap-failure.ts'
import {
  type Approval,
  checkApproval,
  checkLimits,
  checkResolution,
  decisionOf,
  isEnding,
  isOver,
  type LimitsChange,
  type ReportQuestion,
  type Resolution,
  rowsOf,
} from './messages.ts'
import { countResolved } from './parked.ts'
import type { WaitingFor, WriteProgress } from './progress.ts'

const { noteDecision, resolveRow } = proxyActivities<Activities>(operating)

const approve = defineUpdate<string, [Approval]>('approve')
const setLimits = defineUpdate<object, [LimitsChange]>('setLimits')
const resolve = defineUpdate<string, [Resolution]>('resolve')
const status = defineQuery<WriteProgress>('status')
const report = defineQuery<unknown, [ReportQuestion | undefined]>('report')

const pageRows = 100

/** What every report of a write run has. */
export interface WriteResult {
  verdict: string
  summary: string
  counts: ReportCounts
  rows: Partial<Record<keyof ReportCounts, unknown[]>>
  files: object
}

/** What the operator interface shares with the run it serves. */
export interface OperatorState {
  /** Set once the run is open: updates that arrive before wait for it. */
  plan: RunRef | undefined
  result: WriteResult | undefined
  /** How often rows of the run were resolved, so that there may be something to send again. */
  resolved: number
  /** Waits for `approve`. False where nobody came in time, or the run was stopped. */
  ask(question: { what: WaitingFor; count?: number; seconds: number }): Promise<boolean>
  /**
   * Waits for the updates in progress and refuses further ones: the report would not have them, and the run's end
   * would cut them off. Stays open and gives false if `resolved` is no longer `seen`.
   */
  close(seen?: number): Promise<boolean>
}

export interface OperatorText {
  /** An example of every limit that can be set. */
  limits: Readonly<Record<string, number>>
  report: string
}

interface Parties {
  progress: WriteProgress
  show: () => void
  control: RunControl
  notifier: Notifier
  text: OperatorText
}

/**
 * Operator interface of a write run: the updates approve, setLimits and resolve, the queries status and report, and
 * the questions the run waits on. Call it before the first await.
 */
export function registerOperatorHandlers(parties: Parties): OperatorState {
  const { progress, show, control, notifier, text } = parties
  const approval = { given: false }
  let isClosed = false
  const refuseLate = () => {
    if (isClosed) throw isEnding()
  }
  const operator: OperatorState = {
    plan: undefined,
    result: undefined,
    resolved: 0,
    async ask({ what, count, seconds }) {
      approval.given = false
      const until = new Date(Date.now() + seconds * 1000).toISOString()
      progress.waitingFor = { what, until, ...(count !== undefined && { count }) }
      progress.phase = 'waiting for approval'
      show()
      // A question that is asked again (a Reset, another execution) waits until another time and notifies again.
      await notifier.notify({ key: until, ...toAppeal({ progress, what, count, until }) })
      await condition(() => approval.given || control.stopping, seconds * 1000)
      delete progress.waitingFor
      show()
      return approval.given
    },
    async close(seen) {
      await condition(allHandlersFinished)
      // No await from here on: an update between the check and the flag would be cut off.
      if (seen !== undefined && operator.resolved !== seen) return false
      isClosed = true
      return true
    },
  }
  const open = { ...parties, operator, refuseLate }
  registerApprove({ ...open, approval })
  registerSetLimits(open)
  registerResolve(open)
  setHandler(status, () => progress, {
    description: 'Where the run is: its phase, its counts, its limits and what it waits for.',
  })
  setHandler(report, (question) => toPage({ operator, progress, question }), { description: text.report })
  return operator
}

const questions: Readonly<Record<WaitingFor, string>> = {
  approval: 'before it sends anything',
  canary: 'before it sends more than its canary',
  breaker: 'before it tries again: too many changes failed',
}

function toAppeal(question: {
  progress: WriteProgress
  what: WaitingFor
  count: number | undefined
  until: string
}) {
  const { progress, what, count, until } = question
  const { run = '', counts } = progress
  const typed = count === undefined ? '' : ` --count ${count}`
  const done = counts === undefined ? '' : ` ${counts.done} are done, ${counts.staged} are not sent yet.`
  return {
    kind: 'approval' as const,
    summary: `It waits until ${until} for somebody to approve, ${questions[what]}.${done}`,
    command: `${shell`connector approve ${run}`}${typed} --why "..."`,
  }
}

type Open = Parties & { operator: OperatorState; refuseLate: () => void }

/** An update's handler, also after Request Cancellation: the scope that handlers run in is cancelled then. */
const shielded =
  <Said, T>(handler: (said: Said) => Promise<T>) =>
  (said: Said): Promise<T> =>
    CancellationScope.nonCancellable(() => handler(said))

/** Updates may arrive before the run is open. */
async function planned(operator: OperatorState): Promise<RunRef> {
  await condition(() => operator.plan !== undefined)
  return refOf(operator.plan!)
}

async function note(operator: OperatorState, decision: Omit<Decision, 'at'>): Promise<void> {
  const at = new Date().toISOString()
  const summary = `note what ${decision.by} said`
  const input = { ...(await planned(operator)), decision: { at, ...decision } }
  await noteDecision.executeWithOptions({ summary }, [input]).catch(throwRootFailure)
}

function registerApprove({
  operator,
  progress,
  approval,
  refuseLate,
}: Open & { approval: { given: boolean } }): void {
  setHandler(
    approve,
    shielded(async ({ by, why }: Approval) => {
      const question = progress.waitingFor
      await note(operator, { about: question?.what ?? 'approval', by, why })
      // It may have been answered or timed out while this was noted, and nobody has seen the one after it.
      if (progress.waitingFor !== question || question === undefined) throw isOver(by)
      approval.given = true
      return `approved by ${by}`
    }),
    {
      description:
        'Approves what the run waits for: {"by": "your name", "why": "..."}; for deletes also "count", the number of them. Who and why go into the report and are not checked.',
      validator: (said: unknown) => {
        refuseLate()
        checkApproval(said, progress)
      },
    },
  )
}

function registerSetLimits({ operator, progress, show, control, text, refuseLate }: Open): void {
  const names = Object.keys(text.limits)
  setHandler(
    setLimits,
    shielded(async ({ by = 'someone', why = '', ...limits }: LimitsChange) => {
      const said = Object.entries(limits).map(([name, value]) => `${name} ${String(value)}`)
      await note(operator, { about: 'limits', by, why: [said.join(', '), why].filter(Boolean).join(': ') })
      Object.assign(progress.limits, limits)
      control.interrupt()
      show()
      return progress.limits
    }),
    {
      description: `Changes bounds of the run: ${JSON.stringify(text.limits)}, any of them.`,
      validator: (said: unknown) => {
        refuseLate()
        checkLimits(said, names)
      },
    },
  )
}

function registerResolve({ operator, progress, show, refuseLate }: Open): void {
  setHandler(
    resolve,
    shielded(async (said: Resolution) => {
      const { by, why } = said
      const rows = rowsOf(said)
      const named = rows.length === 1 ? `row ${rows[0]}` : `${rows.length} rows`
      const input = { ...(await planned(operator)), rows, decision: decisionOf(said), by, why }
      await resolveRow.executeWithOptions({ summary: `resolve ${named}` }, [input]).catch(throwRootFailure)
      operator.resolved += 1
      countResolved(progress, said)
      show()
      return `${named} resolved by ${by}`
    }),
    {
      description:
        'Says what became of parked rows: {"row": 17, "exists": "<id>"} or "absent": true (it is sent again) or "drop": true, with "by" and "why". "rows": [17, 18] instead of "row" drops or sends several.',
      validator: (said: unknown) => {
        refuseLate()
        checkResolution(said)
      },
    },
  )
}

function toPage({
  operator,
  progress,
  question,
}: {
  operator: OperatorState
  progress: WriteProgress
  question: ReportQuestion | undefined
}) {
  const { outcome, page = 1 } = question ?? {}
  const { result } = operator
  if (outcome === undefined) return { run: progress.run, ...(result ?? { counts: progress.counts }) }
  const rows = result?.rows[outcome] ?? []
  const from = (page - 1) * pageRows
  return {
    outcome,
    count: result?.counts[outcome] ?? progress.counts?.[outcome] ?? 0,
    page,
    pages: Math.max(1, Math.ceil(rows.length / pageRows)),
    rows: rows.slice(from, from + pageRows),
    files: result?.files ?? {},
  }
}
