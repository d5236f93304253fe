import {
  ApplicationFailure,
  type Client,
  WithStartWorkflowOperation,
  WorkflowFailedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client'
import type { ImportInput } from '../activities/import-input.ts'
import type { ImportPlan } from '../imports/import-plan.ts'
import type { importFile } from '../workflows/import-file.ts'
import { stopChangesOnInterrupt } from './follow-changes.ts'
import { planOf } from './import-report.ts'
import { followImport } from './import-run.ts'
import { openLocalSession } from './local-session.ts'
import { savedRecovery } from './recovery-folder.ts'
import { openClient } from './session.ts'
import type { Settings } from '../worker/settings.ts'
import type { RunEnding } from '../workflows/messages.ts'
import { RefusedError } from './terminal/failures.ts'
import type { Terminal } from './terminal/terminal.ts'

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

interface Resolving {
  settings: Settings
  run: string
  said: object
}

/** Resolves a row of an import over servers that run already. */
export async function resolveInImport(options: Resolving): Promise<string> {
  await findPlan(options)
  await using client = await openClient(options.settings)
  return await resolveBy({ ...options, client })
}

async function findPlan({ settings, run }: Omit<Resolving, 'said'>): Promise<ImportPlan> {
  const plan = await planOf(settings, run)
  if (plan !== undefined) return plan
  if ((await savedRecovery(settings, run)) !== undefined)
    throw new RefusedError(`The recovery ${run} has ended, so there is nothing to resolve in it.`, {
      hint: 'The next recovery looks at what needs attention then. While one runs, its update `resolve` does it.',
    })
  throw new RefusedError(`There is no import ${run} in ${settings.dataDir}.`, {
    hint: '`connector runs` lists the runs.',
  })
}

/**
 * Resolves a row of an import, also of one that has ended: it is started again under its own name, does what that
 * leaves to be done, and ends anew.
 */
async function resolveBy({ client, ...resolving }: Resolving & { client: Client }): Promise<string> {
  const { settings, run, said } = resolving
  const plan = await findPlan(resolving)
  const toStart = () =>
    new WithStartWorkflowOperation<typeof importFile>('importFile', {
      workflowId: run,
      taskQueue: settings.taskQueue,
      args: [inputOf(plan)],
      workflowIdConflictPolicy: 'USE_EXISTING',
    })
  const deadline = Date.now() + answerWithinMs
  for (;;) {
    try {
      return await client.withDeadline(deadline, () =>
        client.workflow.executeUpdateWithStart<typeof importFile, string, [object]>('resolve', {
          args: [said],
          startWorkflowOperation: toStart(),
        }),
      )
    } catch (error) {
      if (!isRunEnding(error)) throw toRefusal({ error, run })
      // It is writing its report: once it has ended, it is started again.
      await client.withDeadline(deadline, () => client.workflow.getHandle(run).result()).catch(unlessLate)
    }
  }
}

const isRunEnding = (error: unknown): boolean =>
  error instanceof WorkflowUpdateFailedError &&
  error.cause instanceof ApplicationFailure &&
  error.cause.type === ('RunEnding' satisfies RunEnding)

/** However the run ended, it has ended. */
function unlessLate(error: unknown): void {
  if (!(error instanceof WorkflowFailedError)) throw error
}

/** Resolves it with a Temporal server and a worker of its own, and follows the run to its end. */
export async function resolveLocally({
  terminal,
  ...resolving
}: Resolving & { terminal: Terminal }): Promise<void> {
  const { settings, run } = resolving
  await findPlan(resolving)
  await using closing = new AsyncDisposableStack()
  const session = await openLocalSession({ settings, terminal, mayWrite: (other) => other === run })
  closing.defer(() => session.close())
  const { workspace, mode } = session.identity
  terminal.identity({ workspace, testMode: mode === 'test' })
  const { client } = session
  terminal.note(await resolveBy({ ...resolving, client }))
  const handle = client.workflow.getHandle<typeof importFile>(run)
  using _interrupt = stopChangesOnInterrupt({ session, handle, terminal })
  await followImport({ session, handle, terminal, settings })
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
