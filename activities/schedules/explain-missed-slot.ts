import type { Client, ScheduleDescription } from '@temporalio/client'
import { WorkflowNotFoundError } from '@temporalio/common'
import type { ExportReport } from '../../core/exports/report.ts'
import type { Night } from '../../core/schedules/slots.ts'

/** What became of the run that Temporal was to start at this time, for a person: as far as Temporal still knows. */
export async function tellNight(of: {
  client: Client
  night: Night
  description: ScheduleDescription
}): Promise<string> {
  const { client, night, description } = of
  const { recentActions } = description.info
  const own = recentActions.find(({ scheduledAt }) => Math.abs(scheduledAt.getTime() - night.at) < 1)
  if (own !== undefined) return await tellRun(client, own.action.workflow.workflowId)
  const { paused, note = '' } = description.state
  if (paused) return `the schedule is paused${note === '' ? '' : `: ${note}`}`
  const oldest = recentActions[0]?.scheduledAt.getTime()
  const isForgotten = oldest !== undefined && night.at < oldest
  return isForgotten
    ? 'what became of its run is too long ago for Temporal to say'
    : 'no run was started for it: the one before had not ended, the schedule was paused then, or Temporal was away for longer than it catches up'
}

async function tellRun(client: Client, workflowId: string): Promise<string> {
  const handle = client.workflow.getHandle(workflowId)
  try {
    const { status } = await handle.describe()
    const words = status.name.toLowerCase().replaceAll('_', ' ')
    if (status.name === 'RUNNING') return `its run ${workflowId} has not ended`
    if (status.name !== 'COMPLETED') return `its run ${workflowId} is ${words}`
    const { verdict, summary } = (await handle.result()) as ExportReport
    return `its run ${workflowId} ended ${verdict}: ${summary}`
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return `its run ${workflowId} is forgotten`
    throw error
  }
}
