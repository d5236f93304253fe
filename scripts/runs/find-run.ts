import { WorkflowNotFoundError, type Client } from '@temporalio/client'
import type { exportData } from '../../workflows/export-data.ts'
import type { ExportHandle } from './show-export.ts'
import type { ImportHandle } from './start-import.ts'
import type { RecoveryHandle } from './recovery-folder.ts'
import { RefusedError } from '../terminal/failures.ts'

const hint = '`connector runs` lists the runs.'

/** The workflow id that a run's name belongs to: `<id>.2` is the second run under `<id>`. */
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

/** The import or recovery of this id; undefined where it is a run of another sort, or none. */
export async function findChanges({ client, run }: { client: Client; run: string }) {
  const handle = client.workflow.getHandle(run)
  try {
    const description = await handle.describe()
    if (description.type === 'importFile')
      return { type: 'import' as const, handle: handle as ImportHandle, description }
    if (description.type === 'recoverSubscriptions')
      return { type: 'recovery' as const, handle: handle as RecoveryHandle, description }
    return undefined
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined
    throw error
  }
}

/** The run of this id and what Temporal says of it. Refuses an id that is no run's. */
export async function findRun(options: {
  client: Client
  run: string
  /** Exports and fetches, where nothing else is said: what publishes again can neither be paused nor asked. */
  types?: readonly ('exportData' | 'fetchDocuments' | 'publishRun')[]
}) {
  const { client, run, types = ['exportData', 'fetchDocuments'] } = options
  const handle: ExportHandle = client.workflow.getHandle<typeof exportData>(run)
  const description = await handle.describe().catch((error: unknown) => {
    throw error instanceof WorkflowNotFoundError
      ? new RefusedError(`There is no run ${run}.`, { hint })
      : error
  })
  const { type, parentExecution } = description
  if (types.some((one) => one === type)) return { handle, description }
  const whole = parentExecution?.workflowId
  throw new RefusedError(`${run} is no export, but a ${type}.`, {
    hint: whole === undefined ? hint : `It is a part of the run ${whole}.`,
  })
}
