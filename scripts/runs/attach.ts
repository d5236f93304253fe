import {
  type Client,
  type Workflow,
  type WorkflowHandle,
  WorkflowExecutionAlreadyStartedError,
} from '@temporalio/client'
import { createHash } from 'node:crypto'
import type { Settings } from '../../worker/settings/settings.ts'

export interface Attached<W extends Workflow> {
  handle: WorkflowHandle<W>
  /** Whether an unfinished run of the same command was found instead of starting one. */
  attached: boolean
}

/**
 * Starts the run of a command, or attaches to its unfinished run. The same command always has the same workflow id,
 * so Temporal itself prevents two commands that start together from becoming two runs. Once a run has ended, the next one
 * under its id is called `<id>.2`.
 */
export async function attach<W extends Workflow>(options: {
  client: Client
  taskQueue: string
  workflow: string
  workflowId: string
  input: object
  /** Shown with the run in the Temporal UI. */
  summary: string
}): Promise<Attached<W>> {
  const { client, taskQueue, workflow, workflowId, input, summary } = options
  const handle = client.workflow.getHandle<W>(workflowId)
  try {
    await client.workflow.start(workflow, {
      workflowId,
      taskQueue,
      args: [input],
      workflowIdConflictPolicy: 'FAIL',
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      staticSummary: summary,
    })
    return { handle, attached: false }
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return { handle, attached: true }
    throw error
  }
}

/** The workflow id of a command: what it does, and a hash of its input in this workspace and mode. */
export function nameRun(of: { what: string; settings: Pick<Settings, 'billing'>; input: object }): string {
  const { what, settings, input } = of
  const { workspace, testMode } = settings.billing
  return `${what}-${hashInput({ workspace, testMode, input }).slice(0, 10)}`
}

/** Hashes an input; the order of its fields does not matter. */
export const hashInput = (input: object): string =>
  createHash('sha256').update(toCanonical(input)).digest('hex').slice(0, 16)

function toCanonical(input: object): string {
  const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
  return JSON.stringify(input, (_, value: unknown) =>
    isObject(value)
      ? Object.fromEntries(Object.entries(value as object).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  )
}
