import type { WaitingFor, DeskProgress } from './progress.ts'
import {
  condition,
  defineQuery,
  defineUpdate,
  proxyActivities,
  setHandler,
  CancellationScope,
  allHandlersFinished,
} from '@temporalio/workflow'
import type { Activities } from '../../activities/index.ts'
import type { ReportCounts } from '../../core/runs/counts.ts'
import type { RunRef } from '../../core/runs/known-run.ts'
import type { ChangeRun, Decision } from '../../core/runs/run-files.ts'
import {
  type Approval,
  checkApproval,
  checkLimits,
  checkResolution,
  decisionOf,
  rowsOf,
  isEnding,
  isOver,
  type LimitsChange,
  type ReportQuestion,
  type Resolution,
} from './messages.ts'
import { refOf } from '../ref-of.ts'
import { openNotices, type Notices } from '../run/notify.ts'
import { throwInOwnWords } from '../run/unwrap-failure.ts'
import { countResolved } from './parked.ts'
import type { RunControl } from '../run/control.ts'
import { shell } from '../../core/runs/view/shell.ts'

const { noteDecision, resolveRow } = proxyActivities<Activities>({
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '1s', maximumInterval: '10s', maximumAttempts: 5 },
})

const approve = defineUpdate<string, [Approval]>('approve')
const setLimits = defineUpdate<object, [LimitsChange]>('setLimits')
const resolve = defineUpdate<string, [Resolution]>('resolve')
const status = defineQuery<DeskProgress>('status')
const report = defineQuery<unknown, [ReportQuestion | undefined]>('report')

const pageRows = 100

/** What of a run's result its desk shows by outcome. */
interface DeskResult {
  counts: ReportCounts
  rows: Partial<Record<keyof ReportCounts, unknown[]>>
  files: object
}

/** Where people talk to a running workflow of changes: what they may ask of it, and what it asks of them. */
export interface Desk<Plan extends ChangeRun = ChangeRun, Result extends DeskResult = DeskResult> {
  plan: Plan | undefined
  result: Result | undefined
  /** How often a person has changed rows of the run, so that there may be something to send again. */
  resolved: number
  /** What the run tells people who are not looking; what it asks of them is told by `ask`. */
  notices: Notices
  /** Waits for `approve`. False where nobody came in time, or the run was stopped. */
  ask(question: { what: WaitingFor; count?: number; seconds: number }): Promise<boolean>
  /**
   * Waits for the updates in progress and refuses further ones: the report would not have them, and the run's end
   * would cut them off. Stays open and gives false if `resolved` is no longer `seen`.
   */
  close(seen?: number): Promise<boolean>
}

interface Parties {
  progress: DeskProgress
  show: () => void
  control: RunControl
  words: {
    /** An example of every limit that can be set. */
    limits: Readonly<Record<string, number>>
    report: string
  }
}

/** Call it before the first await. */
export function openDesk<Plan extends ChangeRun, Result extends DeskResult>(
  parties: Parties,
): Desk<Plan, Result> {
  const { progress, show, control, words } = parties
  const approval = { given: false }
  let isClosed = false
  const refuseLate = () => {
    if (isClosed) throw isEnding()
  }
  const notices = openNotices()
  const desk: Desk<Plan, Result> = {
    plan: undefined,
    result: undefined,
    resolved: 0,
    notices,
    async ask({ what, count, seconds }) {
      approval.given = false
      const until = new Date(Date.now() + seconds * 1000).toISOString()
      progress.waitingFor = { what, until, ...(count !== undefined && { count }) }
      progress.phase = 'waiting for approval'
      show()
      // A question that is asked anew (a Reset, another execution) waits until another time, and is told again.
      await notices.tell({ key: until, ...toAppeal({ progress, what, count, until }) })
      await condition(() => approval.given || control.stopping, seconds * 1000)
      delete progress.waitingFor
      show()
      return approval.given
    },
    async close(seen) {
      await condition(allHandlersFinished)
      // No await from here on: an update between the look and the flag would be cut off.
      if (seen !== undefined && desk.resolved !== seen) return false
      isClosed = true
      return true
    },
  }
  const open = { ...parties, desk, refuseLate }
  takeApprovals({ ...open, approval })
  takeLimits(open)
  takeResolutions(open)
  setHandler(status, () => progress, {
    description: 'Where the run is: its phase, its counts, its limits and what it waits for.',
  })
  setHandler(report, (question) => toPage({ desk, progress, question }), { description: words.report })
  return desk
}

const questions: Readonly<Record<WaitingFor, string>> = {
  approval: 'before it sends anything',
  canary: 'before it sends more than its canary',
  breaker: 'before it tries again: too many changes failed',
}

function toAppeal(question: {
  progress: DeskProgress
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

type Open = Parties & { desk: Desk; refuseLate: () => void }

/** An update's handler, also after Request Cancellation: the scope that handlers run in is cancelled then. */
const shielded =
  <Said, T>(handler: (said: Said) => Promise<T>) =>
  (said: Said): Promise<T> =>
    CancellationScope.nonCancellable(() => handler(said))

/** People may speak before the run has settled what it does. */
async function planned(desk: Desk): Promise<RunRef> {
  await condition(() => desk.plan !== undefined)
  return refOf(desk.plan!)
}

async function note(desk: Desk, decision: Omit<Decision, 'at'>): Promise<void> {
  const at = new Date().toISOString()
  const summary = `note what ${decision.by} said`
  const input = { ...(await planned(desk)), decision: { at, ...decision } }
  await noteDecision.executeWithOptions({ summary }, [input]).catch(throwInOwnWords)
}

function takeApprovals({
  desk,
  progress,
  approval,
  refuseLate,
}: Open & { approval: { given: boolean } }): void {
  setHandler(
    approve,
    shielded(async ({ by, why }: Approval) => {
      const question = progress.waitingFor
      await note(desk, { about: question?.what ?? 'approval', by, why })
      // It may have been answered or timed out while this was noted, and nobody has seen the one after it.
      if (progress.waitingFor !== question || question === undefined) throw isOver(by)
      approval.given = true
      return `approved by ${by}`
    }),
    {
      description:
        'Goes on with what the run waits for: {"by": "your name", "why": "..."}; for deletes also "count", the number of them. Who and why go into the report and are not checked.',
      validator: (said: unknown) => {
        refuseLate()
        checkApproval(said, progress)
      },
    },
  )
}

function takeLimits({ desk, progress, show, control, words, refuseLate }: Open): void {
  const names = Object.keys(words.limits)
  setHandler(
    setLimits,
    shielded(async ({ by = 'someone', why = '', ...limits }: LimitsChange) => {
      const said = Object.entries(limits).map(([name, value]) => `${name} ${String(value)}`)
      await note(desk, { about: 'limits', by, why: [said.join(', '), why].filter(Boolean).join(': ') })
      Object.assign(progress.limits, limits)
      control.interrupt()
      show()
      return progress.limits
    }),
    {
      description: `Changes bounds of the run: ${JSON.stringify(words.limits)}, any of them.`,
      validator: (said: unknown) => {
        refuseLate()
        checkLimits(said, names)
      },
    },
  )
}

function takeResolutions({ desk, progress, show, refuseLate }: Open): void {
  setHandler(
    resolve,
    shielded(async (said: Resolution) => {
      const { by, why } = said
      const rows = rowsOf(said)
      const named = rows.length === 1 ? `row ${rows[0]}` : `${rows.length} rows`
      const input = { ...(await planned(desk)), rows, decision: decisionOf(said), by, why }
      await resolveRow.executeWithOptions({ summary: `resolve ${named}` }, [input]).catch(throwInOwnWords)
      desk.resolved += 1
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
  desk,
  progress,
  question,
}: {
  desk: Desk
  progress: DeskProgress
  question: ReportQuestion | undefined
}) {
  const { outcome, page = 1 } = question ?? {}
  const { result } = desk
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
