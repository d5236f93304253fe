import type { Client } from '@temporalio/client'
import { WorkflowNotFoundError } from '@temporalio/common'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { replaceFile } from '../../core/storage/durable.ts'
import { toFileName } from '../../core/storage/file-name.ts'
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
const noteSchema = z.array(z.object({ firstExecutionRunId: z.string(), scheduledFor: z.string() }))

/**
 * Pauses the schedule of a run that is about to fail if, with it, `pauseAfterFailures` runs (from the schedule's
 * memo) failed in a row. Returns the reason, for the notification; undefined if the schedule is not paused.
 */
export function createPauseIfFailing({ dataDir, encrypts }: Pick<ActivityDeps, 'dataDir' | 'encrypts'>) {
  return async function pauseIfFailing({ client }: StepContext, run: FailedRun): Promise<string | undefined> {
    const recorded = await recordFailure({ dataDir, run })
    const handle = client.schedule.getHandle(run.schedule)
    const { action, info, state } = await handle.describe()
    const { pauseAfterFailures: most } = scheduleMemoOf(action)
    if (most === undefined || state.paused) return undefined
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
 * Records a failed run in the data folder, because Temporal deletes runs (after a day on a dev server), so that a
 * nightly schedule would never fail twice in a row. Returns the recorded runs of the schedule.
 */
export async function recordFailure(options: {
  dataDir: string
  run: FailedRun
}): Promise<ReadonlySet<string>> {
  const { dataDir, run } = options
  const folder = join(dataDir, 'schedules')
  const file = join(folder, `${toFileName(run.schedule)}.failed.json`)
  const before = await readFile(file, 'utf8')
    .then((text) => noteSchema.parse(JSON.parse(text)))
    .catch(() => [])
  const { firstExecutionRunId, scheduledFor } = run
  const others = before.filter((failure) => failure.firstExecutionRunId !== firstExecutionRunId)
  const recorded = [...others, { firstExecutionRunId, scheduledFor }].slice(-maxRecorded)
  await mkdir(folder, { recursive: true })
  await replaceFile(file, JSON.stringify(recorded))
  return new Set(recorded.map((failure) => failure.firstExecutionRunId))
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
