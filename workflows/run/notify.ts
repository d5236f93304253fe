import {
  SearchAttributeType,
  WorkflowExecutionAlreadyStartedError,
  defineSearchAttributeKey,
} from '@temporalio/common'
import {
  ApplicationFailure,
  CancellationScope,
  log,
  proxyActivities,
  startChild,
  workflowInfo,
} from '@temporalio/workflow'
import type { Activities } from '../../activities/index.ts'
import type { Notification, NotificationKind } from '../../core/notifications/notification.ts'
import { deliverNotification } from '../deliver-notification.ts'
import { connector } from '../../core/runs/view/shell.ts'
import { escapeMarkdown } from '../../core/runs/view/markdown.ts'
import { pausing } from './activity-options.ts'
import { rethrowBug, rootFailure } from './unwrap-failure.ts'

const { pauseIfFailing } = proxyActivities<Activities>(pausing)

const scheduledById = defineSearchAttributeKey('TemporalScheduledById', SearchAttributeType.KEYWORD)
const scheduledStart = defineSearchAttributeKey('TemporalScheduledStartTime', SearchAttributeType.DATETIME)

/** The schedule that started this run and its scheduled time; undefined if none did. */
export function scheduledBy(): { schedule: string; scheduledFor: string } | undefined {
  const { typedSearchAttributes } = workflowInfo()
  const schedule = typedSearchAttributes.get(scheduledById)
  const at = typedSearchAttributes.get(scheduledStart)
  return schedule === undefined || at === undefined ? undefined : { schedule, scheduledFor: at.toISOString() }
}

export interface RunNotification extends Pick<Notification, 'kind' | 'summary' | 'command' | 'report'> {
  /** Part of the event's id; distinguishes several events of one kind in one run. */
  key?: string
  /** The event's id, if the event is not about this run. */
  id?: string
}

/**
 * Notifies people through NOTIFY_URL. Each notification is delivered by a run of its own, which this one does not
 * await: notifying can neither fail nor delay a run. The event's id survives retries, continue-as-new and Reset.
 */
export interface Notifier {
  /** Sets the kinds that at least one channel accepts, from the run's plan; until then every kind is sent. */
  allow(plan: { notifies?: readonly NotificationKind[] | undefined }): void
  notify(notification: RunNotification): Promise<void>
  /**
   * Notifies people of the failure and fails the run with the step's own failure. A schedule that keeps failing is
   * paused.
   */
  fail: (thrown: unknown) => Promise<never>
}

/** Temporal ids are limited to 1000 bytes, and each character of a typed workflow id may take four. */
const longestName = 200

export function createNotifier(): Notifier {
  let accepted: readonly NotificationKind[] | 'not known yet' = 'not known yet'
  const notifier: Notifier = {
    allow: ({ notifies }) => {
      accepted = notifies ?? []
    },
    async notify({ key, id, ...notification }) {
      if (accepted !== 'not known yet' && !accepted.includes(notification.kind)) return
      const { workflowId, runId, firstExecutionRunId, workflowType: type } = workflowInfo()
      const name = workflowId.slice(0, longestName).toWellFormed()
      const parts = [name, notification.kind, ...(key === undefined ? [] : [key]), firstExecutionRunId]
      const event: Notification = {
        ...notification,
        id: id ?? parts.join('/'),
        at: new Date().toISOString(),
        run: { workflowId, runId, type, ...scheduledBy() },
      }
      await deliver(event)
    },
    fail: (thrown) =>
      CancellationScope.nonCancellable(async () => {
        rethrowBug(thrown)
        const error = rootFailure(thrown)
        // A person stopped it and knows.
        if (error instanceof ApplicationFailure && error.type === 'Stopped') throw error
        const by = scheduledBy()
        // A refusal before the run begins is shown to the person who started it; a scheduled run has nobody to see
        // it.
        if (by === undefined && accepted === 'not known yet') throw error
        const report = error instanceof ApplicationFailure ? error.details?.[0] : undefined
        await notifier.notify({ kind: 'failed', summary: sentenceOf(error), report })
        if (by !== undefined) await pauseAfterFailures({ notifier, by, why: sentenceOf(error) })
        throw error
      }),
  }
  return notifier
}

/** Never throws: ending the run matters more than whether the schedule was paused. */
async function pauseAfterFailures(failed: {
  notifier: Notifier
  by: { schedule: string; scheduledFor: string }
  why: string
}): Promise<void> {
  const { notifier, by, why } = failed
  const { firstExecutionRunId } = workflowInfo()
  const summary = 'pause the schedule if it keeps failing'
  try {
    const paused = await pauseIfFailing.executeWithOptions({ summary }, [{ ...by, why, firstExecutionRunId }])
    if (paused === undefined) return
    const command = connector`schedule unpause ${by.schedule} --why "..."`
    await notifier.notify({ kind: 'paused', summary: `${by.schedule}: ${paused}`, command })
  } catch (error) {
    rethrowBug(error)
    log.warn(`Whether ${by.schedule} keeps failing could not be found out: ${sentenceOf(error)}`)
  }
}

async function deliver(event: Notification): Promise<void> {
  try {
    await startChild(deliverNotification, {
      workflowId: event.id,
      args: [event],
      parentClosePolicy: 'ABANDON',
      cancellationType: 'ABANDON',
      // The same event is notified only once, even after a Reset of the run.
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      staticSummary: escapeMarkdown(`${event.kind}: ${event.run.workflowId}`.slice(0, 90)),
    })
  } catch (error) {
    rethrowBug(error)
    if (error instanceof WorkflowExecutionAlreadyStartedError) return
    log.warn(`The notification ${event.id} could not be handed over: ${sentenceOf(error)}`)
  }
}

function sentenceOf(error: unknown): string {
  if (error instanceof ApplicationFailure) return error.message
  return error instanceof Error ? error.message : String(error)
}
