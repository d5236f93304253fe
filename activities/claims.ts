import { Context, activityInfo } from '@temporalio/activity'
import { WorkflowNotFoundError } from '@temporalio/common'
import type { ClaimOwner } from '../state/claims.ts'
import type { ActivityDeps } from './deps.ts'
import { Busy } from './errors.ts'
import type { ExportPlan } from './open-export.ts'

/** What of a run only one run at a time may do. */
export const claimsOf = (plan: Pick<ExportPlan, 'resources' | 'to'>): string[] =>
  plan.resources.flatMap((resource) => plan.to.map((destination) => `export ${resource} to ${destination}`))

/** The run as the state knows an owner: the workflow id, and a run id that outlives retries. */
export function ownerOf() {
  const { workflowExecution } = activityInfo()
  return { workflowId: workflowExecution?.workflowId ?? '', runId: workflowExecution?.runId ?? '' }
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
  const result = await deps.state.claims.take({ what, owner, isClosed })
  if (result.taken) return
  throw new Busy(
    `The run ${result.heldBy.workflowId} is doing this already (${what}) and has not ended. Wait for it, or stop it.`,
  )
}

/** Whether a run has ended, by Temporal's word. One that Temporal has forgotten (retention, a new server) has. */
export async function isClosed({ workflowId, runId }: ClaimOwner): Promise<boolean> {
  const { client } = Context.current()
  try {
    const { status } = await client.workflow.getHandle(workflowId, runId).describe()
    return status.name !== 'RUNNING' && status.name !== 'CONTINUED_AS_NEW'
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return true
    throw error
  }
}
