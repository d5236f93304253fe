import { WorkflowExecutionAlreadyStartedError, type Client } from '@temporalio/client'
import type { ExportInput, FetchInput } from '../../core/exports/input.ts'
import { listNames } from '../../core/billing/resources/resource.ts'
import type { exportData } from '../../workflows/export-data.ts'
import type { ExportHandle } from './show-export.ts'
import { hashInput } from '../input-hash.ts'

export interface StartedExport {
  handle: ExportHandle
  /** Whether an unfinished run of the same input was found instead of starting one. */
  attached: boolean
}

interface Place {
  client: Client
  taskQueue: string
}

/** Starts an export, or finds the unfinished run of the same input: it goes on as soon as a worker is there. */
export function startExport(options: Place & { input: ExportInput }): Promise<StartedExport> {
  const { resources = [...listNames], to = ['csv'] } = options.input
  const what = resources.length === listNames.length ? 'all' : resources.toSorted().join('-')
  const summary = `${(options.input.resources ?? ['all resources']).join(', ')} to ${to.join(', ')}`
  return startOrAttach({ ...options, workflow: 'exportData', name: `export-${what}`, summary })
}

/** Starts a fetch of documents, or finds the unfinished run of the same input. */
export function startFetch(options: Place & { input: FetchInput }): Promise<StartedExport> {
  const { documents, to = ['csv'] } = options.input
  const summary = `${documents} to ${to.join(', ')}`
  return startOrAttach({ ...options, workflow: 'fetchDocuments', name: `fetch-${documents}`, summary })
}

async function startOrAttach(
  options: Place & {
    workflow: 'exportData' | 'fetchDocuments'
    input: ExportInput | FetchInput
    /** The run's name, but for when it was started. */
    name: string
    summary: string
  },
): Promise<StartedExport> {
  const { client, taskQueue, workflow, input, name, summary } = options
  const inputHash = hashInput(inOrder(input))
  const query = `WorkflowType = '${workflow}' AND ExecutionStatus = 'Running' AND TaskQueue = '${taskQueue}'`
  for await (const run of client.workflow.list({ query })) {
    if (run.memo?.['inputHash'] === inputHash) {
      return {
        handle: client.workflow.getHandle<typeof exportData>(run.workflowId, run.runId),
        attached: true,
      }
    }
  }
  for (let second = 0; ; second += 1) {
    const workflowId = toRunId(name, new Date(Date.now() + second * 1000))
    try {
      const handle: ExportHandle = await client.workflow.start(workflow, {
        workflowId,
        taskQueue,
        args: [input],
        memo: { inputHash },
        staticSummary: summary,
      })
      return { handle, attached: false }
    } catch (error) {
      // Another command took the same second; Temporal's list does not show its run yet.
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error
      const { runId, status, memo } = await client.workflow.getHandle(workflowId).describe()
      if (status.name === 'RUNNING' && memo?.['inputHash'] === inputHash)
        return { handle: client.workflow.getHandle<typeof exportData>(workflowId, runId), attached: true }
    }
  }
}

/** Lists and destinations are the same in any order. */
export const inOrder = ({ to, ...input }: ExportInput | FetchInput) => ({
  ...input,
  ...(to !== undefined && { to: to.toSorted() }),
  ...('resources' in input && input.resources !== undefined && { resources: input.resources.toSorted() }),
})

/** `export-customers-20261121-094205`: what, and when it was started (UTC). */
function toRunId(name: string, at: Date): string {
  const when = at.toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-')
  return `${name}-${when}`
}
