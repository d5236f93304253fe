import { WorkflowExecutionAlreadyStartedError, type Client } from '@temporalio/client'
import { createHash } from 'node:crypto'
import type { ExportInput } from '../activities/open-export.ts'
import { listNames } from '../billing/resources/resource.ts'
import type { exportData } from '../workflows/export-data.ts'
import type { ExportHandle } from './follow-export.ts'

export interface StartedExport {
  handle: ExportHandle
  /** Whether an unfinished run of the same input was found instead of starting one. */
  attached: boolean
}

/** Starts an export, or finds the unfinished run of the same input: it goes on as soon as a worker is there. */
export async function startExport(options: {
  client: Client
  taskQueue: string
  input: ExportInput
}): Promise<StartedExport> {
  const { client, taskQueue, input } = options
  const inputHash = createHash('sha256').update(toCanonical(input)).digest('hex').slice(0, 16)
  const query = `WorkflowType = 'exportData' AND ExecutionStatus = 'Running' AND TaskQueue = '${taskQueue}'`
  for await (const run of client.workflow.list({ query })) {
    if (run.memo?.['inputHash'] === inputHash) {
      return {
        handle: client.workflow.getHandle<typeof exportData>(run.workflowId, run.runId),
        attached: true,
      }
    }
  }
  for (let second = 0; ; second += 1) {
    try {
      const handle = await client.workflow.start<typeof exportData>('exportData', {
        workflowId: toRunId(input, new Date(Date.now() + second * 1000)),
        taskQueue,
        args: [input],
        memo: { inputHash },
        staticSummary: `${(input.resources ?? ['all resources']).join(', ')} to ${(input.to ?? ['csv']).join(', ')}`,
      })
      return { handle, attached: false }
    } catch (error) {
      // Another command took the same second.
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error
    }
  }
}

/** The same text for the same input, in whatever order its fields were put together. */
function toCanonical(input: ExportInput): string {
  const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
  return JSON.stringify(input, (_, value: unknown) =>
    isObject(value)
      ? Object.fromEntries(Object.entries(value as object).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  )
}

/** `export-customers-20261121-094205`: what, and when it was started (UTC). */
function toRunId({ resources = [...listNames] }: ExportInput, at: Date): string {
  const what = resources.length === listNames.length ? 'all' : resources.join('-')
  const when = at.toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-')
  return `export-${what}-${when}`
}
