import { ApplicationFailure, proxyActivities, setCurrentDetails, workflowInfo } from '@temporalio/workflow'
import type { Activities } from '../activities/index.ts'
import type { Notice } from '../core/notifications/notification.ts'
import { throwInOwnWords } from './run/unwrap-failure.ts'
import { escapeMarkdown } from './run/markdown.ts'

const { sendNotice } = proxyActivities<Activities>({
  startToCloseTimeout: '2 minutes',
  // What a receiver has not taken in a day, nobody waits for any more.
  scheduleToCloseTimeout: '24 hours',
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '5 minutes' },
})

/**
 * Tells people one thing, for as long as a day where the receiver is down. A run of its own, so that no run waits for
 * a receiver, or fails with it.
 */
export async function deliverNotice(notice: Notice): Promise<string> {
  if (workflowInfo().parent === undefined) {
    const message = 'deliverNotice is what a run begins to tell people something; it is not started by hand.'
    throw ApplicationFailure.nonRetryable(message, 'InvalidInput')
  }
  setCurrentDetails(escapeMarkdown(notice.summary))
  const summary = escapeMarkdown(`${notice.kind}: ${notice.run.workflowId}`.slice(0, 90))
  return await sendNotice.executeWithOptions({ summary }, [notice]).catch(throwInOwnWords)
}
