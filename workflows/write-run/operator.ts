import { allHandlersFinished, condition, defineQuery, setHandler } from '@temporalio/workflow'
import { formatTime } from '../../core/runs/view/format.ts'
import { connector } from '../../core/runs/view/shell.ts'
import type { RunNotification } from '../run/notify.ts'
import { isEnding, type ReportQuestion } from './messages.ts'
import type { OperatorState, OperatorContext } from './operator-state.ts'
import type { WaitingFor, WriteProgress } from './progress.ts'
import { type Approvals, registerUpdates } from './updates.ts'

const status = defineQuery<WriteProgress>('status')
const report = defineQuery<unknown, [ReportQuestion | undefined]>('report')

const pageRows = 100

/**
 * Operator interface of a write run: the updates approve, setLimits and resolve, the queries status and report, and
 * the questions the run waits on. Call it before the first await.
 */
export function registerOperatorHandlers(parties: OperatorContext): OperatorState {
  const { progress, show, control, notifier, text } = parties
  const approval: Approvals = { ofQuestion: { given: false, recording: 0 } }
  let isClosed = false
  const operator: OperatorState = {
    plan: undefined,
    result: undefined,
    resolved: 0,
    absent: new Set(),
    async ask({ question, count, seconds }) {
      const answer = { given: false, recording: 0 }
      approval.ofQuestion = answer
      const until = new Date(Date.now() + seconds * 1000).toISOString()
      progress.waitingFor = { question, until, ...(count !== undefined && { count }) }
      progress.phase = 'waiting for approval'
      show()
      // A repeated question (after a Reset, or in another execution) has a new deadline, so it notifies again.
      await notifier.notify({ key: until, ...toAppeal(progress, progress.waitingFor) })
      const summary = `waits for approval (${question})`
      await condition(() => answer.given || control.stopping, seconds * 1000, { summary })
      // The next start of the same import goes by what is recorded, so an approval that came in time counts here, too.
      await condition(() => answer.given || answer.recording === 0)
      delete progress.waitingFor
      show()
      return answer.given
    },
    async close(seen) {
      await condition(allHandlersFinished)
      // No await from here on: an update that arrives between the check and the flag would be cut off.
      if (seen !== undefined && operator.resolved !== seen) return false
      isClosed = true
      return true
    },
  }
  const refuseLate = () => {
    if (isClosed) throw isEnding()
  }
  registerUpdates({ ...parties, operator, approval, refuseLate })
  setHandler(status, () => progress, {
    description: 'The progress of the run: its phase, counts, limits and open question.',
  })
  setHandler(report, (question) => toPage({ operator, progress, question }), { description: text.report })
  return operator
}

const questions: Readonly<Record<WaitingFor, string>> = {
  approval: 'before it sends anything',
  canary: 'before it sends more than its canary',
  breaker: 'before it tries again: too many changes failed',
}

function toAppeal(
  { run = '', counts }: WriteProgress,
  { question, count, until }: NonNullable<WriteProgress['waitingFor']>,
): Pick<RunNotification, 'kind' | 'summary' | 'command'> {
  const confirmed = count === undefined ? '' : ` --count ${count}`
  const done = counts === undefined ? '' : ` ${counts.done} done, ${counts.staged} not sent yet.`
  return {
    kind: 'approval',
    summary: `The run waits for approval until ${formatTime(until)}, ${questions[question]}.${done}`,
    command: `${connector`run approve ${run}`}${confirmed} --why "..."`,
  }
}

/** A page of the query `report`. */
export function toPage(of: {
  operator: OperatorState
  progress: WriteProgress
  question: ReportQuestion | undefined
}) {
  const { progress } = of
  const { outcome, page = 1 } = of.question ?? {}
  const { result } = of.operator
  if (outcome === undefined) return { run: progress.run, ...(result ?? { counts: progress.counts }) }
  const rows = result?.rows[outcome] ?? []
  const count = result?.counts[outcome] ?? progress.counts?.[outcome] ?? 0
  const from = (page - 1) * pageRows
  return {
    outcome,
    count,
    page,
    pages: Math.max(1, Math.ceil(rows.length / pageRows)),
    rows: rows.slice(from, from + pageRows),
    ...(rows.length < count && {
      note: `Of ${count} rows, ${rows.length === 0 ? 'none' : `the first ${rows.length}`} can be listed here; ${
        result === undefined ? 'the report at the end of the run lists more' : 'the files have all of them'
      }.`,
    }),
    files: result?.files ?? {},
  }
}
