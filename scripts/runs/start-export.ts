import { WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError, type Client } from '@temporalio/client'
import type { ExportInput, FetchInput } from '../../core/exports/input.ts'
import { listNames } from '../../core/billing/resources/lists.ts'
import type { exportData } from '../../workflows/export-data.ts'
import { agreedIds } from './agreed-id.ts'
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
  /** Commands that share it agree on a run before one of them starts it. */
  dataDir: string
}

/** A command that has not started the run by then has died; its id is left alone. */
const startsWithinMs = 60_000

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
  const { client, taskQueue, dataDir, workflow, input, name, summary } = options
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
  const ids = agreedIds({ dataDir, key: hashInput({ taskQueue, workflow, inputHash }) })
  const propose = (number: number, second: number) =>
    ids.propose({ number, id: toRunId(name, new Date(Date.now() + second * 1000)) })
  let agreed = (await ids.last()) ?? (await propose(1, 0))
  for (let second = 0; ; second += 1) {
    const { id: workflowId } = agreed
    const run = await find({ client, workflowId })
    if (run?.status.name === 'RUNNING' && run.memo?.['inputHash'] === inputHash)
      return { handle: client.workflow.getHandle<typeof exportData>(workflowId, run.runId), attached: true }
    if (run === undefined && Date.now() - agreed.agreedAt < startsWithinMs) {
      const start = { workflowId, taskQueue, args: [input], memo: { inputHash }, staticSummary: summary }
      try {
        const handle: ExportHandle = await client.workflow.start(workflow, start)
        return { handle, attached: false }
      } catch (error) {
        // Another command was first, with the same input or, within the same second, with another one.
        if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error
        continue
      }
    }
    // That run has ended, or is another input's.
    agreed = await propose(agreed.number + 1, second)
  }
}

async function find({ client, workflowId }: { client: Client; workflowId: string }) {
  try {
    return await client.workflow.getHandle(workflowId).describe()
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined
    throw error
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
