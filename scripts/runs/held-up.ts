import type { WorkflowExecutionDescription } from '@temporalio/client'
import { defaultPayloadConverter } from '@temporalio/common'
import { describeTrouble, isTrouble, type Trouble } from '../../core/runs/view/trouble.ts'
import { formatLocalTime, formatWere } from '../../core/runs/view/format.ts'
import { connector } from '../../core/runs/view/shell.ts'
import type { WriteProgress } from '../../workflows/write-run/progress.ts'

type Described = Pick<WorkflowExecutionDescription, 'raw'>

/** The details of the last heartbeat of each of a run's current steps; empty before the first. */
export function heartbeatsOf<Details extends object>({ raw }: Described): Partial<Details>[] {
  return (raw.pendingActivities ?? []).map(({ heartbeatDetails }) => {
    const payload = heartbeatDetails?.payloads?.[0]
    try {
      // A step that has nothing to report yet heartbeats without details.
      return (payload && defaultPayloadConverter.fromPayload<Details | undefined>(payload)) ?? {}
    } catch {
      // Encrypted.
      return {}
    }
  })
}

/** The details of a run's first current step. */
export const heartbeatOf = <Details extends object>(described: Described): Partial<Details> =>
  heartbeatsOf<Details>(described)[0] ?? {}

type Time = { seconds?: unknown } | null | undefined

/** In ms: what ends sooner is not worth a line. */
const worthTellingMs = 5_000

export interface HeldUp {
  /** The same for as long as it is the same trouble. */
  key: string
  text: string
}

/**
 * What holds up a run, or one of its lists, as Temporal knows it from the steps: troubles with the service, and
 * retries.
 */
export function heldUp(description: Described, resource?: string): HeldUp[] {
  const { pendingActivities } = description.raw
  const beats = heartbeatsOf<{ trouble: Trouble; resource: string }>(description)
  return (pendingActivities ?? []).flatMap((activity, index) => {
    const { trouble, resource: own } = beats[index] ?? {}
    if (resource !== undefined && own !== resource) return []
    const told = isTrouble(trouble) && isLong(trouble) ? [toHeldUp(trouble)] : []
    const { lastFailure, attempt = 1 } = activity
    // A worker that was shut down is not a failure.
    if (
      typeof lastFailure?.message !== 'string' ||
      lastFailure.applicationFailureInfo?.type === 'WorkerShutdown'
    )
      return told
    const next = msOf(activity.nextAttemptScheduleTime)
    const when = next === undefined ? `attempt ${attempt}` : `attempt ${attempt} at ${formatLocalTime(next)}`
    const text = `Retrying after: ${lastFailure.message.replace(/\.$/, '')}; ${when}.`
    return [...told, { key: lastFailure.message, text }]
  })
}

/** The troubles that the run itself knows of: a heartbeat may take some seconds to Temporal. */
export const heldUpByRun = (troubles: readonly { trouble: Trouble }[] = []): HeldUp[] =>
  troubles.map(({ trouble }) => toHeldUp(trouble))

/** Each once: several steps mostly have the same trouble, but not since the same moment. */
export const toTexts = (all: readonly HeldUp[]): string[] => [
  ...new Set(new Map(all.toReversed().map(({ key, text }) => [key, text])).values()),
]

const isLong = ({ since, pause, tokenUntil }: Trouble): boolean =>
  tokenUntil !== undefined || (pause?.until ?? Date.now()) - since >= worthTellingMs

const toHeldUp = (trouble: Trouble): HeldUp => ({
  key: JSON.stringify([trouble.what, trouble.since, trouble.pause?.asked, trouble.tokenUntil]),
  text: describeTrouble(trouble, formatLocalTime),
})

/** The tasks of a run that no worker has: which attempt, and how many ms it waits for its turn at most. */
export function waitingTasks({ raw }: Described): { key: string; retryMs: number }[] {
  const { pendingWorkflowTask: task, pendingActivities } = raw
  const isPickedUp = (startedAt: unknown) => startedAt !== null && startedAt !== undefined
  const activities = (pendingActivities ?? [])
    .filter(({ lastStartedTime, state }) => !isPickedUp(lastStartedTime) || Number(state) === scheduled)
    .map(({ activityId, attempt, currentRetryInterval }) => ({
      key: `${activityId} ${attempt}`,
      retryMs: msOf(currentRetryInterval) ?? 0,
    }))
  if (task === null || task === undefined || isPickedUp(task.startedTime)) return activities
  return [{ key: `task ${task.attempt}`, retryMs: 0 }, ...activities]
}

/** PENDING_ACTIVITY_STATE_SCHEDULED: it waits for its next attempt, or for a worker. */
const scheduled = 1

const msOf = (time: Time): number | undefined =>
  time === null || time === undefined ? undefined : Number(time.seconds ?? 0) * 1000

/** How many changes of a run that asks may have been sent: a canary is sent after the approval. */
export const sentWhenAsked = ({
  staged,
  waitingFor,
}: Pick<WriteProgress, 'staged' | 'waitingFor'>): number => {
  const { sent = 0, again = 0, canary = [] } = staged ?? {}
  return waitingFor?.question === 'canary' ? sent + canary.length - again : sent
}

/** Says what a run waits for, with the commands that answer. */
export function toQuestion(progress: WriteProgress, run: string): string | undefined {
  if (progress.waitingFor === undefined) return undefined
  const { question, count, until } = progress.waitingFor
  const confirmed = count === undefined ? '' : ` --count ${count}`
  const sent = sentWhenAsked(progress)
  const why =
    question === 'breaker'
      ? 'Too many failed, and so did every trial after that'
      : sent === 0
        ? 'Nothing was sent yet'
        : `${formatWere(sent)} sent, and the others wait`
  return `${why}. The run waits for approval until ${formatLocalTime(until, 'minutes')}. To approve: ${connector`run approve ${run}`}${confirmed} --why "..."; to end it: ${connector`run stop ${run}`}`
}
