import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  condition,
  currentUpdateInfo,
  defineUpdate,
  proxyActivities,
  setHandler,
} from '@temporalio/workflow'
import type { Activities } from '../../activities/index.ts'
import type { PartlyResolved } from '../../activities/write/operator.ts'
import type { RunRef } from '../../core/runs/known-run.ts'
import type { Decision } from '../../core/runs/run-notes.ts'
import { operating } from '../run/activity-options.ts'
import { refOf } from '../run/run-ref.ts'
import { throwRootFailure } from '../run/unwrap-failure.ts'
import {
  type Approval,
  checkApproval,
  checkLimits,
  refuseHigher,
  checkResolution,
  decisionOf,
  isOver,
  type LimitsChange,
  type Resolution,
  rowsOf,
} from './messages.ts'
import type { OperatorState, OperatorContext } from './operator-state.ts'
import type { WriteProgress } from './progress.ts'

const { noteDecision, resolveRow } = proxyActivities<Activities>(operating)

const approve = defineUpdate<string, [Approval]>('approve')
const setLimits = defineUpdate<object, [LimitsChange]>('setLimits')
const resolve = defineUpdate<string, [Resolution]>('resolve')

export interface Approvals {
  ofQuestion: {
    given: boolean
    /** How many approvals of it are being recorded. */
    recording: number
  }
}

type Open = OperatorContext & {
  operator: OperatorState
  approval: Approvals
  /** @throws once the run accepts no more updates */
  refuseLate: () => void
}

export function registerUpdates(open: Open): void {
  registerApprove(open)
  registerSetLimits(open)
  registerResolve(open)
}

/** Wraps an update's handler so that it also works after Request Cancellation, which cancels the scope of handlers. */
const shielded =
  <Input, T>(handler: (input: Input) => Promise<T>) =>
  (input: Input): Promise<T> =>
    CancellationScope.nonCancellable(() => handler(input))

/** Waits until the run is open, because updates may arrive earlier. */
async function planned(operator: OperatorState): Promise<RunRef> {
  await condition(() => operator.plan !== undefined)
  return refOf(operator.plan!)
}

async function record(operator: OperatorState, decision: Omit<Decision, 'at'>): Promise<void> {
  const at = new Date().toISOString()
  const summary = `record the decision of ${decision.by}`
  const input = { ...(await planned(operator)), decision: { at, ...decision } }
  await noteDecision.executeWithOptions({ summary }, [input]).catch(throwRootFailure)
}

function registerApprove({ operator, progress, approval, refuseLate }: Open): void {
  setHandler(
    approve,
    shielded(async ({ by, why }: Approval) => {
      const question = progress.waitingFor
      const { ofQuestion } = approval
      ofQuestion.recording += 1
      const about = question?.question ?? 'approval'
      const { sent = 0, canary = [] } = progress.staged ?? {}
      const isFirst = sent + canary.length === 0
      await record(operator, {
        about: about === 'canary' && isFirst ? 'sending' : about,
        by,
        why,
      }).finally(() => (ofQuestion.recording -= 1))
      // The question may have been answered or timed out, and the person has not seen the next one.
      if (progress.waitingFor !== question || question === undefined) throw isOver(by)
      ofQuestion.given = true
      return `approved by ${by}`
    }),
    {
      description:
        'Approves the open question: {"by": "your name", "why": "..."}; for deletes also "count", their number. Name and reason go into the report and are not checked.',
      validator: (input: unknown) => {
        refuseLate()
        checkApproval(input, progress)
      },
    },
  )
}

function registerSetLimits({ operator, progress, show, control, text, refuseLate }: Open): void {
  const names = Object.keys(text.limits)
  setHandler(
    setLimits,
    shielded(async ({ by = 'someone', why = '', ...limits }: LimitsChange) => {
      // Only where it is needed: one more turn here would change the order of commands.
      if (operator.plan === undefined) await condition(() => operator.plan !== undefined)
      refuseHigher(limits, { ...operator.plan!.limits }, text.lowerOnly)
      const changes = Object.entries(limits).map(([name, value]) => `${name} ${String(value)}`)
      await record(operator, {
        about: 'limits',
        by,
        why: [changes.join(', '), why].filter(Boolean).join(': '),
      })
      Object.assign(progress.limits, limits)
      control.interrupt()
      show()
      return progress.limits
    }),
    {
      description: `Changes limits of the run: ${JSON.stringify(text.limits)}, any of them.`,
      validator: (input: unknown) => {
        refuseLate()
        checkLimits(input, names)
      },
    },
  )
}

function registerResolve({ operator, progress, show, refuseLate }: Open): void {
  setHandler(
    resolve,
    shielded(async (resolution: Resolution) => {
      const { by, why } = resolution
      const id = currentUpdateInfo()?.id ?? ''
      const rows = rowsOf(resolution)
      const name = rows.length === 1 ? `row ${rows[0]}` : `${rows.length} rows`
      const decision = decisionOf(resolution)
      const input = { ...(await planned(operator)), id, rows, decision, by, why }
      const noteResolved = (resolved: readonly number[]) => {
        operator.resolved += 1
        if ('absent' in decision) for (const row of resolved) operator.absent.add(row)
      }
      const confirmation = await resolveRow.executeWithOptions({ summary: `resolve ${name}` }, [input]).then(
        (answer) => {
          noteResolved(rows)
          return answer
        },
        (error: unknown) => {
          noteResolved(resolvedBefore(error))
          return throwRootFailure(error)
        },
      )
      countResolved(progress, resolution)
      show()
      return [`${name} resolved by ${by}`, ...(confirmation ? [confirmation] : [])].join('; ')
    }),
    {
      description:
        'Resolves parked rows: {"row": 17, "exists": "<id>"} or "absent": true (it is sent again) or "drop": true (it is skipped), with "by" and "why". "rows": [17, 18] instead of "row" drops or sends several. A row that was resolved as existing can be corrected.',
      validator: (input: unknown) => {
        refuseLate()
        checkResolution(input)
      },
    },
  )
}

/** Of several rows, those that were resolved before one that could not be. */
function resolvedBefore(error: unknown): readonly number[] {
  if (!(error instanceof ActivityFailure && error.cause instanceof ApplicationFailure)) return []
  const [details] = error.cause.details ?? []
  return (details as PartlyResolved | undefined)?.resolved ?? []
}

/** Adjusts the counts until the next segment reads them from the ledger. */
export function countResolved(
  { counts, parkedRows }: Pick<WriteProgress, 'counts' | 'parkedRows'>,
  resolution: Resolution,
): void {
  const decision = decisionOf(resolution)
  const to = 'exists' in decision ? 'done' : 'absent' in decision ? 'staged' : 'skipped'
  for (const row of rowsOf(resolution)) {
    const at = parkedRows?.indexOf(row) ?? -1
    if (counts === undefined || at < 0) continue
    parkedRows?.splice(at, 1)
    counts.parked -= 1
    counts[to] += 1
  }
}
