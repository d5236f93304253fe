import { ApplicationFailure, proxyActivities, setCurrentDetails, workflowInfo } from '@temporalio/workflow'
import type { Activities } from '../activities/index.ts'
import type { Notification } from '../core/notifications/notification.ts'
import { escapeMarkdown } from '../core/runs/view/markdown.ts'
import { notifying } from './run/activity-options.ts'
import { throwRootFailure } from './run/unwrap-failure.ts'

const { sendNotification } = proxyActivities<Activities>(notifying)

/**
 * Delivers one notification, retrying for up to a day while its channel is down. It is a run of its own, so that no
 * other run waits for a channel or fails with it.
 */
export async function deliverNotification(notification: Notification): Promise<string> {
  const { parent, workflowId } = workflowInfo()
  if (parent === undefined && workflowId !== notification?.id) {
    const message = 'deliverNotification is started by a run that notifies people; it is not started by hand.'
    throw ApplicationFailure.nonRetryable(message, 'InvalidInput')
  }
  setCurrentDetails(escapeMarkdown(notification.summary))
  const summary = escapeMarkdown(`${notification.kind}: ${notification.run.workflowId}`.slice(0, 90))
  return await sendNotification.executeWithOptions({ summary }, [notification]).catch(throwRootFailure)
}
