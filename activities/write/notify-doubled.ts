import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common'
import type { Doubled } from '../../core/changes/send/segment.ts'
import { doneTwice } from '../../core/changes/transitions.ts'
import { accepts, type Notification } from '../../core/notifications/notification.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'

/**
 * Logs that the service has done a change more than once, and notifies people. An answer may be so late that its run has
 * ended, so this starts the delivery itself. Never throws.
 */
export async function notifyDoubled({
  deps,
  context,
  run,
  doubled,
}: {
  deps: Pick<ActivityDeps, 'channels' | 'observer'>
  context: Pick<StepContext, 'client' | 'owner' | 'taskQueue' | 'workflowType'>
  run: string
  doubled: Doubled
}): Promise<void> {
  const { client, owner, taskQueue, workflowType: type } = context
  const { row, ids } = doubled
  const message = doneTwice(ids)
  deps.observer.onEvent({ type: 'doubled', run, row, message })
  if (!deps.channels.some(({ level }) => accepts(level, 'doubled'))) return
  const notification: Notification = {
    id: `${run.slice(0, longestName).toWellFormed()}/doubled/row-${row}/${ids.join('+')}`,
    kind: 'doubled',
    at: new Date().toISOString(),
    run: { ...owner, type },
    summary: `Row ${row}: ${message}. Check both in the service and delete one.`,
  }
  try {
    await client.workflow.start('deliverNotification', {
      taskQueue,
      workflowId: notification.id,
      args: [notification],
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
    })
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return
    const why = error instanceof Error ? error.message : String(error)
    deps.observer.onEvent({ type: 'notNotified', run, row, why })
  }
}

/** Temporal ids are limited to 1000 bytes, and each character of a run's name may take four. */
const longestName = 200
