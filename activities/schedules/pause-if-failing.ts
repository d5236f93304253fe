import { Context } from '@temporalio/activity'
import type { Client } from '@temporalio/client'
import { WorkflowNotFoundError } from '@temporalio/common'
import { scheduleMemoOf } from '../../core/schedules/memo.ts'

export interface FailedRun {
  schedule: string
  scheduledFor: string
  /** Of the failing run itself. */
  firstExecutionRunId: string
  /** Why this run failed. */
  why: string
}

const failed = new Set(['FAILED', 'TIMED_OUT'])
const longestNote = 1_000

/**
 * Pauses the schedule of a run that is about to fail, if the runs before it failed too, as many in a row as its memo
 * says. The note says why. Gives that note, or undefined where the schedule goes on.
 */
export function createPauseIfFailing() {
  return async function pauseIfFailing(run: FailedRun): Promise<string | undefined> {
    const { client } = Context.current()
    const handle = client.schedule.getHandle(run.schedule)
    const { action, info, state } = await handle.describe()
    const { pauseAfterFailures: most } = scheduleMemoOf(action)
    if (most === undefined || state.paused) return undefined
    const earlier = info.recentActions
      .map((recent) => recent.action.workflow)
      .filter(({ firstExecutionRunId }) => firstExecutionRunId !== run.firstExecutionRunId)
    let inARow = 1
    for (const workflow of earlier.toReversed()) {
      if (inARow >= most || !(await hasFailed({ client, ...workflow }))) break
      inARow += 1
    }
    if (inARow < most) return undefined
    const note = `Paused after ${inARow} failed runs in a row; the last: ${run.why}`
      .slice(0, longestNote)
      .toWellFormed()
    await handle.pause(note)
    return note
  }
}

/** A run that Temporal has forgotten is not held against its schedule, and holds up none that fails now. */
export async function hasFailed(run: {
  client: Client
  workflowId: string
  firstExecutionRunId: string
}): Promise<boolean> {
  const { client, workflowId, firstExecutionRunId } = run
  const statusOf = async (runId?: string) =>
    (await client.workflow.getHandle(workflowId, runId).describe()).status.name
  try {
    // A night that was tried again has the same id.
    const first = await statusOf(firstExecutionRunId)
    return failed.has(first === 'CONTINUED_AS_NEW' ? await statusOf() : first)
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false
    throw error
  }
}
