import {
  ApplicationFailure,
  type Client,
  WithStartWorkflowOperation,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client'
import { type ImportInput, type ImportPlan, importSettings } from '../../core/imports/input.ts'
import type { importFile } from '../../workflows/import-file.ts'
import { awaitAnyEnd, onlyResolvedMemo } from './resolving-run.ts'
import { planOf, savedRecovery } from './saved-plan.ts'
import { openClient } from '../session/session.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import type { RunEnding } from '../../workflows/write-run/messages.ts'
import { RefusedError } from '../terminal/failures.ts'
import { tellIfSlow } from '../terminal/tell-if-slow.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { connector } from '../../core/runs/view/shell.ts'

/** In ms. A live worker answers in a second or two; one that must replay a long history, in ten. */
const answerWithinMs = 30_000

const waitingForWorker = 'Waiting for the worker ...'

/**
 * Sends an update to a write run and waits for its answer.
 *
 * @throws {RefusedError} the run refuses the update
 */
export async function updateRun<T>({
  settings,
  terminal,
  run,
  name,
  input,
}: {
  settings: Settings
  terminal: Terminal
  run: string
  name: 'approve' | 'setLimits' | 'resolve'
  input: object
}): Promise<T> {
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

interface Resolving {
  settings: Settings
  terminal: Terminal
  run: string
  input: object
}

/** Resolves a row of an import, or of a recovery that is in progress, through an active server and worker. */
export async function resolveInRun(options: Resolving): Promise<string> {
  if (await isRecovery(options))
    return await updateRun<string>({ ...options, name: 'resolve' }).catch((error: unknown) => {
      throw error instanceof NoSuchRunError ? hasEnded(options) : error
    })
  await findPlan(options)
  await using client = await openClient(options)
  const work = resolveBy({ ...options, client })
  return await tellIfSlow({ terminal: options.terminal, line: waitingForWorker, work })
}

async function findPlan({ settings, run }: Pick<Resolving, 'settings' | 'run'>): Promise<ImportPlan> {
  const plan = await planOf(settings, run)
  if (plan?.dryRun === true)
    throw new RefusedError(
      `The import ${run} was a dry run: nothing was sent, so there is nothing to resolve.`,
    )
  if (plan !== undefined) return plan
  if (await isRecovery({ settings, run })) throw hasEnded({ run })
  throw new RefusedError(`There is no import ${run} in ${settings.dataDir}.`, {
    hint: `\`${connector`run list`}\` lists the runs.`,
  })
}

const isRecovery = async ({ settings, run }: Pick<Resolving, 'settings' | 'run'>) =>
  (await planOf(settings, run)) === undefined && (await savedRecovery(settings, run)) !== undefined

const hasEnded = ({ run }: Pick<Resolving, 'run'>) =>
  new RefusedError(`The recovery ${run} is not in progress, so there is nothing to resolve in it.`, {
    hint: 'The next recovery looks up what this one resumed, and reads the list again.',
  })

/**
 * Resolves a row of an import, even after it has ended: starts it again under its own name, so that it sends the row
 * again if that was decided, and ends again. What a stop has left unsent stays so.
 */
async function resolveBy({
  client,
  ...resolving
}: Omit<Resolving, 'terminal'> & { client: Client }): Promise<string> {
  const { settings, run, input } = resolving
  const plan = await findPlan(resolving)
  const toStart = () =>
    new WithStartWorkflowOperation<typeof importFile>('importFile', {
      workflowId: run,
      taskQueue: settings.taskQueue,
      args: [inputOf(plan)],
      memo: { [onlyResolvedMemo]: true },
      workflowIdConflictPolicy: 'USE_EXISTING',
    })
  const deadline = Date.now() + answerWithinMs
  for (;;) {
    try {
      return await client.withDeadline(deadline, () =>
        client.workflow.executeUpdateWithStart<typeof importFile, string, [object]>('resolve', {
          args: [input],
          startWorkflowOperation: toStart(),
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

function toRefusal({ error, run }: { error: unknown; run: string }): unknown {
  if (error instanceof WorkflowNotFoundError)
    return new NoSuchRunError(`There is no active run ${run}.`, {
      hint: `\`${connector`run list`}\` lists the runs.`,
    })
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError)
    return new RefusedError(
      `No worker answered for ${run}; the update may still take effect when one starts.`,
      {
        cause: error,
        hint: `Start one with \`${connector`worker`}\` or \`${connector`up`}\`, and check the report.`,
      },
    )
  if (error instanceof WorkflowUpdateFailedError && error.cause !== undefined)
    return new RefusedError(error.cause.message, { cause: error })
  return error
}
