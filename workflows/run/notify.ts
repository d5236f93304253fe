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
import type { Notice, NoticeKind } from '../../core/notifications/notification.ts'
import { deliverNotice } from '../deliver-notification.ts'
import { onlyFailures } from '../only-failures.ts'
import { inOwnWords } from './unwrap-failure.ts'
import { shell } from '../../core/runs/view/shell.ts'
import { escapeMarkdown } from './markdown.ts'

const { pauseIfFailing } = proxyActivities<Activities>({
  startToCloseTimeout: '30 seconds',
  scheduleToCloseTimeout: '5 minutes',
  retry: { initialInterval: '1s', maximumInterval: '30s' },
})

const scheduledById = defineSearchAttributeKey('TemporalScheduledById', SearchAttributeType.KEYWORD)
const scheduledStart = defineSearchAttributeKey('TemporalScheduledStartTime', SearchAttributeType.DATETIME)

/** Which schedule started this run and for when; undefined where none did. */
export function scheduledBy(): { schedule: string; scheduledFor: string } | undefined {
  const { typedSearchAttributes } = workflowInfo()
  const schedule = typedSearchAttributes.get(scheduledById)
  const at = typedSearchAttributes.get(scheduledStart)
  return schedule === undefined || at === undefined ? undefined : { schedule, scheduledFor: at.toISOString() }
}

export interface Told extends Pick<Notice, 'kind' | 'summary' | 'command' | 'report'> {
  /** Tells several of one kind in one run apart: part of the event's id. */
  key?: string
  /** The event's id, where it is not this run that it is about. */
  id?: string
}

/**
 * What a run tells people, through NOTIFY_URL. Each is delivered by a run of its own, which this one does not wait
 * for: telling can neither fail nor hold up a run. The event's id outlives retries, continue-as-new and Reset.
 */
export interface Notices {
  /** What anybody wants to hear of, when that is known; until then all of it is told. */
  listen(plan: { notifies?: readonly NoticeKind[] | undefined }): void
  tell(told: Told): Promise<void>
  /** Fails the run in the words of the step that failed, told before; a schedule that keeps failing pauses itself. */
  fail: (thrown: unknown) => Promise<never>
}

/** Temporal takes ids of up to 1000 bytes, and of a workflow id that somebody typed a character may have four. */
const longestName = 200

export function openNotices(): Notices {
  let wanted: readonly NoticeKind[] | 'not known yet' = 'not known yet'
  const notices: Notices = {
    listen: ({ notifies }) => {
      wanted = notifies ?? []
    },
    async tell({ key, id, ...told }) {
      if (wanted !== 'not known yet' && !wanted.includes(told.kind)) return
      const { workflowId, runId, firstExecutionRunId, workflowType: type } = workflowInfo()
      const name = workflowId.slice(0, longestName).toWellFormed()
      const parts = [name, told.kind, ...(key === undefined ? [] : [key]), firstExecutionRunId]
      const notice: Notice = {
        ...told,
        id: id ?? parts.join('/'),
        at: new Date().toISOString(),
        run: { workflowId, runId, type, ...scheduledBy() },
      }
      await deliver(notice)
    },
    fail: (thrown) =>
      CancellationScope.nonCancellable(async () => {
        onlyFailures(thrown)
        const error = inOwnWords(thrown)
        // Whoever stopped it knows.
        if (error instanceof ApplicationFailure && error.type === 'Stopped') throw error
        const by = scheduledBy()
        // What is refused before it began is shown to the person who started it; a schedule has nobody there.
        if (by === undefined && wanted === 'not known yet') throw error
        const report = error instanceof ApplicationFailure ? error.details?.[0] : undefined
        await notices.tell({ kind: 'failed', summary: sentenceOf(error), report })
        if (by !== undefined) await pauseAfterFailures({ notices, by, why: sentenceOf(error) })
        throw error
      }),
  }
  return notices
}

/** Whether the schedule paused itself matters less than that the run ends. */
async function pauseAfterFailures(failed: {
  notices: Notices
  by: { schedule: string; scheduledFor: string }
  why: string
}): Promise<void> {
  const { notices, by, why } = failed
  const { firstExecutionRunId } = workflowInfo()
  const summary = 'pause the schedule if it keeps failing'
  try {
    const paused = await pauseIfFailing.executeWithOptions({ summary }, [{ ...by, why, firstExecutionRunId }])
    if (paused === undefined) return
    const command = shell`connector schedule unpause ${by.schedule} --why "..."`
    await notices.tell({ kind: 'paused', summary: `${by.schedule}: ${paused}`, command })
  } catch (error) {
    onlyFailures(error)
    log.warn(`Whether ${by.schedule} keeps failing could not be found out: ${sentenceOf(error)}`)
  }
}

async function deliver(notice: Notice): Promise<void> {
  try {
    await startChild(deliverNotice, {
      workflowId: notice.id,
      args: [notice],
      parentClosePolicy: 'ABANDON',
      cancellationType: 'ABANDON',
      // The same event is told once, also where the run that tells it is reset.
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      staticSummary: escapeMarkdown(`${notice.kind}: ${notice.run.workflowId}`.slice(0, 90)),
    })
  } catch (error) {
    onlyFailures(error)
    if (error instanceof WorkflowExecutionAlreadyStartedError) return
    log.warn(`The notice ${notice.id} could not be handed over: ${sentenceOf(error)}`)
  }
}

function sentenceOf(error: unknown): string {
  if (error instanceof ApplicationFailure) return error.message
  return error instanceof Error ? error.message : String(error)
}
