import { connector } from '../../core/runs/view/shell.ts'
import {
  type Client,
  WorkflowFailedError,
  type WorkflowHandle,
  WorkflowNotFoundError,
} from '@temporalio/client'
import { RefusedError } from '../terminal/failures.ts'

/** The workflow types of the runs that people start, and what the commands call them. */
export const runTypes = {
  exportData: 'export',
  fetchDocuments: 'fetch',
  publishRun: 'publish',
  importFile: 'import',
  recoverSubscriptions: 'recovery',
} as const

type RunType = keyof typeof runTypes
export type RunKind = (typeof runTypes)[RunType]

export const isRunType = (type: string): type is RunType => Object.hasOwn(runTypes, type)

/** For a query of Temporal's list of runs. */
export const runTypeQuery = `WorkflowType IN (${Object.keys(runTypes)
  .map((type) => `'${type}'`)
  .join(', ')})`

const hint = `\`${connector`run list`}\` lists the runs.`

/** The workflow id of a run: `<id>.2` is the second run of `<id>`. */
export async function workflowIdOf({ client, run }: { client: Client; run: string }): Promise<string> {
  const [, id] = /^(.+)\.\d+$/.exec(run) ?? []
  if (id === undefined || (await isWorkflow(client, run)) || !(await isWorkflow(client, id))) return run
  return id
}

async function isWorkflow(client: Client, workflowId: string): Promise<boolean> {
  try {
    await client.workflow.getHandle(workflowId).describe()
    return true
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false
    throw error
  }
}

/**
 * Finds the run with this id, its kind and its description in Temporal.
 *
 * @throws {RefusedError} there is no such run, or it is of another type
 */
export async function findRun({ client, run }: { client: Client; run: string }) {
  const handle = client.workflow.getHandle(run)
  const description = await handle.describe().catch(async (error: unknown) => {
    throw error instanceof WorkflowNotFoundError ? await noRun({ client, run }) : error
  })
  const { type } = description
  if (isRunType(type)) return { kind: runTypes[type], handle, description }
  throw new RefusedError(`${run} is a ${type}, which has no progress to show.`, { hint })
}

/** The name may be that of a schedule, whose runs have names of their own. */
async function noRun({ client, run }: { client: Client; run: string }): Promise<RefusedError> {
  const { info } = await client.schedule
    .getHandle(run)
    .describe()
    .catch(() => ({ info: undefined }))
  if (info === undefined) return new RefusedError(`There is no run ${run}.`, { hint })
  const last = info.recentActions.at(-1)?.action.workflow.workflowId
  return new RefusedError(`${run} is a schedule, not a run.`, {
    hint:
      last === undefined
        ? `It has had none yet: \`${connector`schedule list`}\` shows when the next one starts.`
        : `Its last run is ${last}.`,
  })
}

/** Marks a run that `resolve` has started: it sends only what is resolved. */
export const onlyResolvedMemo = 'onlyResolved'

/** Whether the run under this handle only resolves rows. */
export async function isResolving(handle: Pick<WorkflowHandle, 'describe'>): Promise<boolean> {
  const { memo } = await handle.describe()
  return memo?.[onlyResolvedMemo] === true
}

/** Waits until a run has ended, even by a failure. */
export async function awaitAnyEnd(handle: Pick<WorkflowHandle, 'result'>): Promise<void> {
  try {
    await handle.result()
  } catch (error) {
    if (!(error instanceof WorkflowFailedError)) throw error
  }
}

/** The worker fails when it resumes the run, so that no query or update of it gets an answer. */
export const unresumable = (run: string, cause: unknown): RefusedError =>
  new RefusedError(
    `The worker cannot resume ${run}, mostly because it has another version than the run began with.`,
    {
      cause,
      hint: 'Go back to that version until the run has ended, or terminate the run in the Temporal UI and run the same command again.',
    },
  )
