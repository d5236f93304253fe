import { ActivityFailure, condition, TimeoutFailure, workflowInfo } from '@temporalio/workflow'
import type { SegmentInput, SendStep } from '../../core/changes/send/segment.ts'
import type { DeskProgress } from './progress.ts'
import type { Desk } from './operator.ts'
import { type Pace, toPace } from '../run/throughput.ts'
import type { RunControl } from '../run/control.ts'
import { shell } from '../../core/runs/view/shell.ts'

const firstSegmentSeconds = 15
const longestSegmentSeconds = 600

/** How the sending ended. `giveUp`: what is left is not tried any more by this run. */
export type SendingEnd =
  | { how: 'finished'; giveUp: boolean; why?: string }
  | { how: 'stopped'; giveUp: false; why: string }

/** What of a run its segments hand on from one to the next. */
export interface Thread {
  breakers: SendStep['breakers']
  claims: number
  seconds: number
  segment: number
  /** Whether the breaker is open. */
  isOpen: boolean
}

export const newThread = (): Thread => ({
  breakers: {},
  claims: 0,
  seconds: firstSegmentSeconds,
  segment: 1,
  isOpen: false,
})

export interface SendingProgress extends DeskProgress {
  /** What the breaker waits for, where it is open. */
  breakerUntil?: string
  /** Of the last segment, while there is something left to send. */
  pace?: Pace
}

export interface Sending {
  progress: SendingProgress
  show: () => void
  control: RunControl
  desk: Desk
  thread: Thread
  /** How many changes there are to send at the beginning. */
  open: number
  /** Whether a breaker that has given up waits for a person, and how long. */
  attended: boolean
  approvalSeconds: number
  /** What is said of a run that was stopped. */
  stopped: string
  /** The activity that sends a segment. */
  send: (input: SegmentInput, summary: string) => Promise<SendStep>
  /** The canary. */
  rows?: readonly number[]
  /** What is due one after another is waited for together, at least so long. */
  leastWaitMs?: number
  /** Before each segment: where the history is long, a new execution begins here. */
  beforeSegment?: () => Promise<void>
  /** After each segment: ends the sending where it gives an end. */
  afterStep?: (step: SendStep) => Promise<SendingEnd | 'goOn' | undefined>
}

/**
 * Sends what is staged, or only the canary, in segments of growing length (15 s, doubling to ten minutes), so that
 * the run shows life early and 100,000 changes still make only hundreds of events. Undefined where all of it was
 * sent and settled; the last step of a canary is given to `afterCanary`.
 */
export async function sendSome(
  sending: Sending & { afterCanary?: (step: SendStep) => Promise<SendingEnd | undefined> },
): Promise<SendingEnd | undefined> {
  const { progress, show, control, thread, rows } = sending
  for (;;) {
    await control.mayGoOn()
    if (control.stopping) return { how: 'stopped', giveUp: false, why: sending.stopped }
    await sending.beforeSegment?.()
    progress.phase = rows === undefined ? 'sending' : 'canary'
    show()
    const begun = Date.now()
    const step = await control.untilInterrupted(async () => {
      const { seconds, breakers, claims } = thread
      const input = { seconds, breakers, claims, ...(rows && { rows: [...rows] }) }
      const summary = rows === undefined ? `send, part ${thread.segment}` : `canary of ${rows.length}`
      try {
        return await sending.send(input, summary)
      } catch (error) {
        thread.claims = Math.max(claims, claimsReported(error))
        throw error
      }
    })
    if (step === 'interrupted') continue
    Object.assign(thread, { breakers: step.breakers, claims: step.claims, segment: thread.segment + 1 })
    if (rows === undefined) thread.seconds = Math.min(thread.seconds * 2, longestSegmentSeconds)
    notePace(sending, { before: progress.counts?.staged ?? sending.open, begun, step })
    progress.counts = step.counts
    progress.parkedRows = step.parkedRows ?? []
    show()
    await tellOpening(sending, step)
    if (step.ended === 'finished') return await sending.afterCanary?.(step)
    const end = (await sending.afterStep?.(step)) ?? (await judge(sending, step))
    if (end === 'goOn') continue
    if (end !== undefined) return end
    await waitUntilDue(sending, step)
  }
}

/**
 * How many claims a segment reported before its worker fell silent. A segment that is cancelled returns its step
 * instead, with its claims.
 */
function claimsReported(error: unknown): number {
  if (!(error instanceof ActivityFailure && error.cause instanceof TimeoutFailure)) return 0
  const { claims } = { ...(error.cause.lastHeartbeatDetails as { claims?: unknown } | undefined) }
  return typeof claims === 'number' ? claims : 0
}

/** A canary is over too soon to tell, and what waits between two segments is no pace. */
function notePace({ progress, rows }: Sending, segment: { before: number; begun: number; step: SendStep }) {
  const { before, begun, step } = segment
  const now = Date.now()
  const left = step.counts.staged
  const pace = rows === undefined ? toPace({ done: before - left, left, ms: now - begun, now }) : undefined
  delete progress.pace
  if (pace !== undefined) progress.pace = pace
}

/** Once for each time that it opens, and not for each of its trials. */
async function tellOpening({ thread, desk }: Sending, { ended, counts }: SendStep): Promise<void> {
  const opens = ended === 'breaker' && !thread.isOpen
  thread.isOpen = ended === 'breaker'
  if (!opens) return
  const { done, rejected, parked } = counts
  const summary = `${done} done, ${rejected} rejected, ${parked} parked. It tries single changes after waits that grow.`
  const { workflowId } = workflowInfo()
  const command = shell`connector status ${workflowId}`
  await desk.notices.tell({ kind: 'breaker', key: new Date().toISOString(), summary, command })
}

/** What a breaker that tries no more means: an end, or a question to a person. */
async function judge(sending: Sending, step: SendStep): Promise<SendingEnd | 'goOn' | undefined> {
  const { attended, approvalSeconds, desk, control, thread } = sending
  if (step.ended !== 'breaker' || step.givenUp.length === 0 || step.nextAt !== undefined) return undefined
  if (!attended)
    return {
      how: 'finished',
      giveUp: true,
      why: 'too many changes failed, and so did every trial after it',
    }
  if (!(await desk.ask({ what: 'breaker', seconds: approvalSeconds })))
    return control.stopping
      ? { how: 'stopped', giveUp: false, why: sending.stopped }
      : { how: 'finished', giveUp: true, why: 'the breaker is open, and nobody closed it in time' }
  const opened = step.givenUp.map((lane) => [lane, { clearedAt: Date.now(), trials: 0 }] as const)
  thread.breakers = { ...thread.breakers, ...Object.fromEntries(opened) }
  return 'goOn'
}

async function waitUntilDue(sending: Sending, { ended, nextAt }: SendStep): Promise<void> {
  const { progress, show, control, desk, leastWaitMs = 1 } = sending
  if (nextAt === undefined) return
  const ms = Math.max(leastWaitMs, nextAt - Date.now())
  if (ended === 'breaker') progress.breakerUntil = new Date(Date.now() + ms).toISOString()
  show()
  // A stop, a pause or a person's word about a parked row are not waited out.
  const { resolved } = desk
  await condition(() => control.stopping || control.paused || desk.resolved > resolved, ms)
  delete progress.breakerUntil
}
