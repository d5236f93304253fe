import {
  WithStartWorkflowOperation,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client'
import type { ImportInput } from '../activities/import-input.ts'
import type { ImportPlan } from '../imports/import-plan.ts'
import type { importFile } from '../workflows/import-file.ts'
import { planOf } from './import-report.ts'
import { openClient } from './session.ts'
import type { Settings } from '../worker/settings.ts'
import { RefusedError } from './terminal/failures.ts'

/** A worker that lives answers in a second or two; one that has to read a long history anew, in ten. */
const answerWithinMs = 30_000

/** Tells a running import something and waits for its answer; its refusal is told as ours. */
export async function updateImport<T>({
  settings,
  run,
  name,
  said,
}: {
  settings: Settings
  run: string
  name: 'approve' | 'setLimits' | 'resolve'
  said: object
}): Promise<T> {
  await using client = await openClient(settings)
  try {
    return await client.withDeadline(Date.now() + answerWithinMs, () =>
      client.workflow.getHandle(run).executeUpdate<T, [object]>(name, { args: [said] }),
    )
  } catch (error) {
    throw toRefusal({ error, run })
  }
}

/**
 * Resolves a row of an import, also of one that has ended: it is started again under its own name, does what that
 * leaves to be done, and ends anew.
 */
export async function resolveInImport({
  settings,
  run,
  said,
}: {
  settings: Settings
  run: string
  said: object
}): Promise<string> {
  const plan = await planOf(settings, run)
  if (plan === undefined)
    throw new RefusedError(`There is no import ${run} in ${settings.dataDir}.`, {
      hint: '`connector runs` lists the runs.',
    })
  await using client = await openClient(settings)
  const startWorkflowOperation = new WithStartWorkflowOperation<typeof importFile>('importFile', {
    workflowId: run,
    taskQueue: settings.taskQueue,
    args: [inputOf(plan)],
    workflowIdConflictPolicy: 'USE_EXISTING',
  })
  try {
    return await client.withDeadline(Date.now() + answerWithinMs, () =>
      client.workflow.executeUpdateWithStart<typeof importFile, string, [object]>('resolve', {
        args: [said],
        startWorkflowOperation,
      }),
    )
  } catch (error) {
    throw toRefusal({ error, run })
  }
}

/** What starts the same run again. */
function inputOf(plan: ImportPlan): ImportInput {
  const { kind, file, lines, mapping, columns, onInvalid, done, existing, sendAgain, limits, identity } = plan
  return {
    kind,
    file,
    mapping,
    ...(lines !== undefined && { lines }),
    ...(columns && { columns }),
    ...(sendAgain.length > 0 && { sendAgain }),
    onInvalid,
    done,
    existing,
    ...limits,
    identity,
  }
}

function toRefusal({ error, run }: { error: unknown; run: string }): unknown {
  if (error instanceof WorkflowNotFoundError)
    return new RefusedError(`There is no run ${run} that has not ended.`, {
      hint: '`connector runs` lists the runs.',
    })
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError)
    return new RefusedError(
      `No worker answered for ${run}; what was said may still be heard when one starts.`,
      {
        cause: error,
        hint: 'Start one with `connector worker` or `connector up`, and look at the report.',
      },
    )
  if (error instanceof WorkflowUpdateFailedError && error.cause !== undefined)
    return new RefusedError(error.cause.message, { cause: error })
  return error
}
