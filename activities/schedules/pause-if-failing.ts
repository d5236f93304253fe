import type { Client } from '@temporalio/client'
import { WorkflowNotFoundError } from '@temporalio/common'
import type { Notes } from '../../core/state/notes.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'
import { scheduleMemoOf } from '../../core/schedules/memo.ts'

export interface FailedRun {
  schedule: string
  scheduledFor: string
  /** The first run id of the failing run itself. */
  firstExecutionRunId: string
  /** Why this run failed. */
  why: string
}

const failed = new Set(['FAILED', 'TIMED_OUT'])
const maxNoteLength = 1_000
/** Twice the number of recent runs that a schedule lists, which is also twice the maximum of `pauseAfterFailures`. */
const maxRecorded = 20

/**
 * Pauses the schedule of a run that is about to fail if, with it, `pauseAfterFailures` runs (from the schedule's
 * memo) failed in a row. Returns the reason, for the notification; undefined if the schedule is not paused.
 */
export function createPauseIfFailing({ state, encrypts }: Pick<ActivityDeps, 'state' | 'encrypts'>) {
  return async function pauseIfFailing({ client }: StepContext, run: FailedRun): Promise<string | undefined> {
    const recorded = await recordFailure({ notes: state.notes, run })
    const handle = client.schedule.getHandle(run.schedule)
    const { action, info, state: schedule } = await handle.describe()
    const { pauseAfterFailures: most } = scheduleMemoOf(action)
    if (most === undefined || schedule.paused) return undefined
    const earlier = info.recentActions
      .map((recent) => recent.action.workflow)
      .filter(({ firstExecutionRunId }) => firstExecutionRunId !== run.firstExecutionRunId)
    let inARow = 1
    for (const workflow of earlier.toReversed()) {
      if (inARow >= most || !(await hasFailed({ client, recorded, ...workflow }))) break
      inARow += 1
    }
    if (inARow < most) return undefined
    const note = `Paused after ${inARow} failed runs in a row`
    const reason = `${note}; the last: ${run.why}`.slice(0, maxNoteLength).toWellFormed()
    // Temporal keeps a schedule's note unencrypted.
    await handle.pause(encrypts ? note : reason)
    return reason
  }
}

/**
 * Records a failed run in the state, because Temporal deletes runs (after a day on a dev server), so that a nightly
 * schedule would never fail twice in a row. Returns the recorded runs of the schedule.
 */
export async function recordFailure({
  notes,
  run,
}: {
  notes: Notes
  run: Pick<FailedRun, 'schedule' | 'scheduledFor' | 'firstExecutionRunId'>
}): Promise<ReadonlySet<string>> {
  const subject = `schedule ${run.schedule}`
  const failed = { name: run.firstExecutionRunId, body: run.scheduledFor }
  await notes.add({ subject, notes: [failed], keep: maxRecorded })
  return new Set((await notes.of(subject)).map(({ name }) => name))
}

/** Whether a run failed; for a run that Temporal no longer has, whether it is recorded as failed. */
export async function hasFailed(run: {
  client: Client
  recorded: ReadonlySet<string>
  workflowId: string
  firstExecutionRunId: string
}): Promise<boolean> {
  const { client, recorded, workflowId, firstExecutionRunId } = run
  const statusOf = async (runId?: string) =>
    (await client.workflow.getHandle(workflowId, runId).describe()).status.name
  try {
    // A retried run has the same workflow id, so the first execution is checked.
    const first = await statusOf(firstExecutionRunId)
    return failed.has(first === 'CONTINUED_AS_NEW' ? await statusOf() : first)
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return recorded.has(firstExecutionRunId)
    throw error
  }
}
