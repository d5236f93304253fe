import {
  type Client,
  type Workflow,
  type WorkflowHandle,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
} from '@temporalio/client'
import { PayloadKeyError } from '../../worker/codec/payload-codec.ts'
import { hashInput } from '../input-hash.ts'
import { agreedIds } from './agreed-id.ts'

export interface Attached<W extends Workflow> {
  handle: WorkflowHandle<W>
  /** Whether an unfinished run of the same command was found instead of starting one. */
  attached: boolean
}

export interface Start {
  client: Client
  taskQueue: string
  workflow: string
  input: object
  /** Shown with the run in the Temporal UI. */
  summary: string
}

/**
 * Starts the run of a command, or attaches to its unfinished run. The same command always has the same workflow id,
 * so Temporal itself prevents two commands that start together from becoming two runs.
 */
export async function attach<W extends Workflow>(
  options: Start & { workflowId: string },
): Promise<Attached<W>> {
  const { client, workflowId } = options
  const handle = client.workflow.getHandle<W>(workflowId)
  return { handle, attached: !(await start({ ...options, isReusable: true })) }
}

/** In ms. A command that has not started its run within this time has died; its id stays unused. */
const startsWithinMs = 60_000

/**
 * Like `attach`, for runs whose id contains their start time, because their folders are sorted by it: the commands
 * of one data folder agree on the id.
 */
export async function attachDated<W extends Workflow>(
  options: Start & {
    dataDir: string
    /** The id without its time. */
    name: string
    /** The command's request; equal for the same command. */
    key: object
  },
): Promise<Attached<W>> {
  const { client, taskQueue, workflow, dataDir, name } = options
  const inputHash = hashInput(options.key)
  const query = `WorkflowType = '${workflow}' AND ExecutionStatus = 'Running' AND TaskQueue = '${taskQueue}'`
  for await (const run of client.workflow.list({ query }))
    if (run.memo?.['inputHash'] === inputHash)
      return { handle: client.workflow.getHandle<W>(run.workflowId, run.runId), attached: true }
  const ids = agreedIds({ dataDir, key: hashInput({ taskQueue, workflow, inputHash }) })
  const propose = (number: number, second: number) =>
    ids.propose({ number, id: toRunId(name, new Date(Date.now() + second * 1000)) })
  let agreed = (await ids.last()) ?? (await propose(1, 0))
  for (let second = 0; ; second += 1) {
    const { id: workflowId } = agreed
    const isRecent = Date.now() - agreed.agreedAt < startsWithinMs
    if (isRecent && (await start({ ...options, workflowId, memo: { inputHash } })))
      return { handle: client.workflow.getHandle<W>(workflowId), attached: false }
    // Another command was first: whose run is it?
    const run = await find(client, workflowId)
    if (run?.status.name === 'RUNNING' && run.memo?.['inputHash'] === inputHash)
      return { handle: client.workflow.getHandle<W>(workflowId, run.runId), attached: true }
    // The run has ended or belongs to another input, or its command has died.
    agreed = await propose(agreed.number + 1, second)
  }
}

/** False if a run with this id is active (or, if the id is not reusable, was ever started). */
async function start(
  options: Start & { workflowId: string; memo?: Record<string, unknown>; isReusable?: boolean },
): Promise<boolean> {
  const { client, taskQueue, workflow, input, summary, workflowId, memo, isReusable = false } = options
  try {
    await client.workflow.start(workflow, {
      workflowId,
      taskQueue,
      args: [input],
      workflowIdConflictPolicy: 'FAIL',
      workflowIdReusePolicy: isReusable ? 'ALLOW_DUPLICATE' : 'REJECT_DUPLICATE',
      staticSummary: summary,
      ...(memo && { memo }),
    })
    return true
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return false
    throw error
  }
}

/** Undefined also for the run of a connector that shares the namespace and has another key. */
async function find(client: Client, workflowId: string) {
  try {
    return await client.workflow.getHandle(workflowId).describe()
  } catch (error) {
    if (error instanceof WorkflowNotFoundError || error instanceof PayloadKeyError) return undefined
    throw error
  }
}

/** `export-customers-20261121-094205`: the name and the time of the start (UTC). */
function toRunId(name: string, at: Date): string {
  const time = at.toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-')
  return `${name}-${time}`
}
