import { type Client, WorkflowNotFoundError, type WorkflowHandle } from '@temporalio/client'
import type { exportData } from '../../workflows/export-run.ts'
import type { importFile } from '../../workflows/import-file.ts'
import type { recoverSubscriptions } from '../../workflows/recover-subscriptions.ts'
import { RefusedError } from '../terminal/failures.ts'
import { isRunType } from './run-types.ts'
import { connector } from '../../core/runs/view/shell.ts'

/** An export, a fetch, or a run that publishes one again: all end in the report of an export. */
export type ExportHandle = WorkflowHandle<typeof exportData>

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
 * Finds the run with this id and its description in Temporal.
 *
 * @throws {RefusedError} there is no such run, or it is of another type
 */
export async function findRun({ client, run }: { client: Client; run: string }) {
  const handle = client.workflow.getHandle(run)
  const description = await handle.describe().catch((error: unknown) => {
    throw error instanceof WorkflowNotFoundError
      ? new RefusedError(`There is no run ${run}.`, { hint })
      : error
  })
  const { type } = description
  if (type === 'importFile')
    return { type: 'import' as const, handle: handle as WorkflowHandle<typeof importFile>, description }
  if (type === 'recoverSubscriptions')
    return {
      type: 'recovery' as const,
      handle: handle as WorkflowHandle<typeof recoverSubscriptions>,
      description,
    }
  if (isRunType(type)) return { type: 'export' as const, handle: handle as ExportHandle, description }
  throw new RefusedError(`${run} is a ${type}, which has no progress to show.`, { hint })
}

/** A run that writes to the service. */
export type FoundChanges = Extract<Awaited<ReturnType<typeof findRun>>, { type: 'import' | 'recovery' }>
