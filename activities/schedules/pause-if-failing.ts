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
  /** Of the failing run itself. */
  firstExecutionRunId: string
  /** Why this run failed. */
  why: string
}

const failed = new Set(['FAILED', 'TIMED_OUT'])
const longestNote = 1_000
/** Twice as many as a schedule tells of its runs, which is also twice the most that `pauseAfterFailures` takes. */
const mostNoted = 20
const noteSchema = z.array(z.object({ firstExecutionRunId: z.string(), scheduledFor: z.string() }))

/**
 * Pauses the schedule of a run that is about to fail, if the runs before it failed too, as many in a row as its memo
 * says. The note says why. Gives that note, or undefined where the schedule goes on.
 */
export function createPauseIfFailing({ dataDir }: Pick<ActivityDeps, 'dataDir'>) {
  return async function pauseIfFailing({ client }: StepContext, run: FailedRun): Promise<string | undefined> {
    const noted = await noteFailure({ dataDir, run })
    const handle = client.schedule.getHandle(run.schedule)
    const { action, info, state } = await handle.describe()
    const { pauseAfterFailures: most } = scheduleMemoOf(action)
    if (most === undefined || state.paused) return undefined
    const earlier = info.recentActions
      .map((recent) => recent.action.workflow)
      .filter(({ firstExecutionRunId }) => firstExecutionRunId !== run.firstExecutionRunId)
    let inARow = 1
    for (const workflow of earlier.toReversed()) {
      if (inARow >= most || !(await hasFailed({ client, noted, ...workflow }))) break
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

/**
 * Notes a failed run in the data folder: Temporal forgets its runs, after a day on a dev server, and a nightly schedule
 * would never fail twice in a row. Gives the runs of the schedule that are noted.
 */
export async function noteFailure(of: { dataDir: string; run: FailedRun }): Promise<ReadonlySet<string>> {
  const { dataDir, run } = of
  const folder = join(dataDir, 'schedules')
  const file = join(folder, `${toFileName(run.schedule)}.failed.json`)
  const before = await readFile(file, 'utf8')
    .then((text) => noteSchema.parse(JSON.parse(text)))
    .catch(() => [])
  const { firstExecutionRunId, scheduledFor } = run
  const others = before.filter((one) => one.firstExecutionRunId !== firstExecutionRunId)
  const noted = [...others, { firstExecutionRunId, scheduledFor }].slice(-mostNoted)
  await mkdir(folder, { recursive: true })
  await replaceFile(file, JSON.stringify(noted))
  return new Set(noted.map((one) => one.firstExecutionRunId))
}

/** Of a run that Temporal has forgotten, whether it is noted as failed; no other is held against its schedule. */
export async function hasFailed(run: {
  client: Client
  noted: ReadonlySet<string>
  workflowId: string
  firstExecutionRunId: string
}): Promise<boolean> {
  const { client, noted, workflowId, firstExecutionRunId } = run
  const statusOf = async (runId?: string) =>
    (await client.workflow.getHandle(workflowId, runId).describe()).status.name
  try {
    // A night that was tried again has the same id.
    const first = await statusOf(firstExecutionRunId)
    return failed.has(first === 'CONTINUED_AS_NEW' ? await statusOf() : first)
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return noted.has(firstExecutionRunId)
    throw error
  }
}
