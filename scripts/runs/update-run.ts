import { connector } from '../../core/runs/view/shell.ts'
import {
  ApplicationFailure,
  type Client,
  isGrpcServiceError,
  ServiceError,
  WithStartWorkflowOperation,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client'
import { type ImportInput, type ImportPlan, importSettings } from '../../core/imports/input.ts'
import type { importFile } from '../../workflows/import-file.ts'
import { awaitAnyEnd, onlyResolvedMemo, unresumable } from './find-run.ts'
import { planOf } from './run-files.ts'
import { openClient } from '../session/session.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import type { RunEnding } from '../../workflows/write-run/messages.ts'
import { RefusedError } from '../terminal/failures.ts'
import { tellIfSlow, type Terminal } from '../terminal/terminal.ts'

/** In ms. A live worker answers in a second or two; one that must replay a long history, in ten. */
const answerWithinMs = 30_000

const listHint = `\`${connector`run list`}\` lists the runs.`

const waitingForWorker = 'Waiting for the worker ...'

/** An update of a run, for example the outcome of parked rows. */
interface Updating {
  settings: Settings
  terminal: Terminal
  run: string
  input: object
}

/**
 * Sends an update to a write run and waits for its answer.
 *
 * @throws {RefusedError} the run refuses the update
 */
export async function updateRun<T>(
  options: Updating & { name: 'approve' | 'setLimits' | 'resolve' },
): Promise<T> {
  const { settings, terminal, run, name, input } = options
  await using client = await openClient({ settings, terminal })
  try {
    const work = client.withDeadline(Date.now() + answerWithinMs, () =>
      client.workflow.getHandle(run).executeUpdate<T, [object]>(name, { args: [input] }),
    )
    return await tellIfSlow({ terminal, line: waitingForWorker, work })
  } catch (error) {
    throw toRefusal({ error, run })
  }
}

/**
 * Resolves rows of a run, through an active server and worker. An import that has ended is started again under its own
 * name: it sends a row again if that was decided, and ends again. What a stop has left unsent stays so.
 */
export async function resolveInRun(options: Updating): Promise<string> {
  const { settings, terminal, run } = options
  const plan = await planOf(settings, run)
  if (plan === undefined)
    throw new RefusedError(`There is no import ${run} in ${settings.dataDir}.`, { hint: listHint })
  if (plan.job === 'recovery') return await resolveInRecovery(options)
  if (plan.dryRun)
    throw new RefusedError(
      `The import ${run} was a dry run: nothing was sent, so there is nothing to resolve.`,
    )
  await using client = await openClient(options)
  return await tellIfSlow({
    terminal,
    line: waitingForWorker,
    work: resolveInImport(options, { client, plan }),
  })
}

async function resolveInRecovery(options: Updating): Promise<string> {
  const { run } = options
  return await updateRun<string>({ ...options, name: 'resolve' }).catch((error: unknown) => {
    if (!(error instanceof NoSuchRunError)) throw error
    throw new RefusedError(`The recovery ${run} is not in progress, so there is nothing to resolve in it.`, {
      hint: 'The next recovery looks up what this one resumed, and reads the list again.',
    })
  })
}

async function resolveInImport(
  { settings, run, input }: Updating,
  { client, plan }: { client: Client; plan: ImportPlan },
): Promise<string> {
  const deadline = Date.now() + answerWithinMs
  for (;;) {
    const startWorkflowOperation = new WithStartWorkflowOperation<typeof importFile>('importFile', {
      workflowId: run,
      taskQueue: settings.taskQueue,
      args: [inputOf(plan)],
      memo: { [onlyResolvedMemo]: true },
      workflowIdConflictPolicy: 'USE_EXISTING',
    })
    try {
      return await client.withDeadline(deadline, () =>
        client.workflow.executeUpdateWithStart<typeof importFile, string, [object]>('resolve', {
          args: [input],
          startWorkflowOperation,
        }),
      )
    } catch (error) {
      if (!isRunEnding(error)) throw toRefusal({ error, run })
      // The run is writing its report: waits for its end and then starts it again.
      await client.withDeadline(deadline, () => awaitAnyEnd(client.workflow.getHandle(run)))
    }
  }
}

const isRunEnding = (error: unknown): boolean =>
  error instanceof WorkflowUpdateFailedError &&
  error.cause instanceof ApplicationFailure &&
  error.cause.type === ('RunEnding' satisfies RunEnding)

/** The input that starts the same run again, as it was begun, but only for what is resolved. */
const inputOf = (plan: ImportPlan): ImportInput => ({
  ...importSettings.parse(plan),
  ...plan.limits,
  kind: plan.kind,
  file: plan.file,
  mapping: plan.mapping,
  identity: plan.identity,
  onlyResolved: true,
})

class NoSuchRunError extends RefusedError {}

export const noActiveRun = (run: string) =>
  new NoSuchRunError(`There is no active run ${run}.`, { hint: listHint })

/** FAILED_PRECONDITION (https://grpc.io/docs/guides/status-codes): the task of the workflow has failed. */
const failedPrecondition = 9

function toRefusal({ error, run }: { error: unknown; run: string }): unknown {
  const isTaskFailed =
    error instanceof ServiceError &&
    isGrpcServiceError(error.cause) &&
    (error.cause.code as number) === failedPrecondition
  if (isTaskFailed) return unresumable(run, error)
  if (error instanceof WorkflowNotFoundError) return noActiveRun(run)
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError)
    return new RefusedError(
      `No worker answered for ${run}; the update may still take effect when one starts.`,
      {
        cause: error,
        hint: `Start one with \`${connector`worker`}\` or \`${connector`up`}\`, and check the report.`,
      },
    )
  if (error instanceof WorkflowUpdateFailedError && error.cause?.message.startsWith('No registered handler'))
    return new RefusedError(`${run} is neither an import nor a recovery: it takes no approval and no limits.`)
  if (error instanceof WorkflowUpdateFailedError && error.cause !== undefined)
    return new RefusedError(error.cause.message, { cause: error })
  return error
}
