import { Context, activityInfo } from '@temporalio/activity'
import type { Client, WorkflowExecutionDescription, WorkflowHandle } from '@temporalio/client'
import { WorkflowNotFoundError } from '@temporalio/common'
import type { ClaimOwner } from '../state/claims.ts'
import type { ActivityDeps } from './deps.ts'
import { Busy, InvalidInput } from './errors.ts'
import type { ExportPlan } from './export-plan.ts'

/** What of a run only one run at a time may do. */
export const claimsOf = (plan: Pick<ExportPlan, 'resources' | 'to'>): string[] =>
  plan.resources.flatMap((resource) => plan.to.map((destination) => `export ${resource} to ${destination}`))

/** The run as the state knows an owner: the workflow id, and a run id that outlives retries. */
export function ownerOf() {
  const { workflowExecution } = activityInfo()
  // What it keeps would lie under no name at all.
  if (workflowExecution === undefined) throw new InvalidInput('This step is part of a workflow: start that.')
  const { workflowId, runId } = workflowExecution
  return { workflowId, runId }
}

/** Takes the claims of a run, or refuses with the run that holds one and has not ended. */
export async function claimExports({ deps, plan }: { deps: ActivityDeps; plan: ExportPlan }): Promise<void> {
  for (const what of claimsOf(plan)) await claim({ deps, what })
}

/** Taken again by each step: a run that was reset is another execution, and the one that took the claim has ended. */
export async function claim(options: {
  deps: ActivityDeps
  what: string
  owner?: ClaimOwner
}): Promise<void> {
  const { deps, what, owner = ownerOf() } = options
  const result = await deps.state.claims.take({ what, owner, isClosed: isClosedTo(owner) })
  if (result.taken) return
  throw new Busy(
    `The run ${result.heldBy.workflowId} is doing this already (${what}) and has not ended. Wait for it, or stop it.`,
  )
}

/** What `asker`, which runs, is told of another run: whether that has ended, by Temporal's word. */
export const isClosedTo = (asker: ClaimOwner) => (execution: ClaimOwner) =>
  isClosed({ client: Context.current().client, execution, asker })

/**
 * Whether a run has ended. One that Temporal has forgotten (retention, a new server) has; one that was reset or
 * continued has not, as long as what came of it runs. Of one workflow id a single execution runs at a time: where
 * that is the asker itself, all before it have ended.
 */
export async function isClosed(options: {
  client: Pick<Client, 'workflow'>
  execution: ClaimOwner
  asker: ClaimOwner
}): Promise<boolean> {
  const { client, execution, asker } = options
  const { workflowId, runId } = execution
  const noted = await describe(client.workflow.getHandle(workflowId, runId))
  if (noted !== undefined && isOpen(noted)) return false
  if (workflowId === asker.workflowId) return true
  const last = await describe(client.workflow.getHandle(workflowId))
  if (last === undefined || !isOpen(last)) return true
  // The first of a long chain may be forgotten while its last one runs: its id is the chain's.
  return chainOf(last) !== (noted === undefined ? runId : chainOf(noted))
}

/** Undefined where Temporal does not know it. */
async function describe(
  handle: Pick<WorkflowHandle, 'describe'>,
): Promise<WorkflowExecutionDescription | undefined> {
  try {
    return await handle.describe()
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined
    throw error
  }
}

const isOpen = ({ status }: WorkflowExecutionDescription) =>
  status.name === 'RUNNING' || status.name === 'PAUSED'

/** What a reset, a retry and a continuation have in common with the run that they came of. */
const chainOf = ({ raw }: WorkflowExecutionDescription) => raw.workflowExecutionInfo?.firstRunId
