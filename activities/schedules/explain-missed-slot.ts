import type { Client, ScheduleDescription } from '@temporalio/client'
import { WorkflowNotFoundError } from '@temporalio/common'
import type { ExportReport } from '../../core/exports/report.ts'
import type { ScheduleSlot } from '../../core/schedules/slots.ts'

/** Explains to a person what happened to the run that was due in this slot, as far as Temporal still knows. */
export async function explainMissedSlot(options: {
  client: Client
  slot: ScheduleSlot
  description: ScheduleDescription
}): Promise<string> {
  const { client, slot, description } = options
  const { recentActions } = description.info
  const own = recentActions.find(({ scheduledAt }) => Math.abs(scheduledAt.getTime() - slot.at) < 1)
  if (own !== undefined) return await explainRun(client, own.action.workflow.workflowId)
  const { paused, note = '' } = description.state
  if (paused) return `the schedule is paused${note === '' ? '' : `: ${note}`}`
  const oldest = recentActions[0]?.scheduledAt.getTime()
  const isForgotten = oldest !== undefined && slot.at < oldest
  return isForgotten
    ? 'its run is too old: Temporal no longer has it'
    : 'no run was started for it: the previous run was still active, the schedule was paused then, or Temporal was down for longer than `catchUp`'
}

async function explainRun(client: Client, workflowId: string): Promise<string> {
  const handle = client.workflow.getHandle(workflowId)
  try {
    const { status } = await handle.describe()
    const ended = status.name.toLowerCase().replaceAll('_', ' ')
    if (status.name === 'RUNNING') return `its run ${workflowId} is still active`
    if (status.name !== 'COMPLETED') return `its run ${workflowId} is ${ended}`
    const { verdict, summary } = (await handle.result()) as ExportReport
    return `its run ${workflowId} ended ${verdict}: ${summary}`
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return `Temporal no longer has its run ${workflowId}`
    throw error
  }
}
