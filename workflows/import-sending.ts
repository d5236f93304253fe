import { condition, proxyActivities } from '@temporalio/workflow'
import type { Activities } from '../activities/index.ts'
import type { SendStep } from '../activities/import-segment.ts'
import type { Staged } from '../activities/stage-import.ts'
import type { ImportPlan } from '../imports/import-plan.ts'
import type { ImportDesk } from './import-desk.ts'
import type { ImportProgress } from './import-details.ts'
import type { RunControl } from './run-control.ts'

const { sendImport } = proxyActivities<Activities>({
  startToCloseTimeout: '15 minutes',
  // 5 s: after a SIGKILL of the worker the run goes on in under 7 s, and a stop is heard within 4 s.
  heartbeatTimeout: '5s',
  // What is on its way is awaited: a report that came before it would call it unknown.
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  // Without an end: a try begins where the ledger stands, so it costs little and harms nothing, and what should
  // not be tried again says so itself. Why it waits is shown under Pending Activities.
  // The waits grow slowly: a worker that is killed five times in a segment must not cost the run half a minute, and
  // a service that is away is waited for by the sender itself.
  retry: { initialInterval: '1s', backoffCoefficient: 1.2, maximumInterval: '30s' },
})

const firstSegmentSeconds = 15
const longestSegmentSeconds = 600

/** How the sending ended. `giveUp`: what is left is not tried any more by this run. */
export type SendingEnd =
  | { how: 'finished'; giveUp: boolean; why?: string }
  | { how: 'stopped'; giveUp: false; why: string }

interface Sending {
  plan: ImportPlan
  staged: Staged
  progress: ImportProgress
  show: () => void
  control: RunControl
  desk: ImportDesk
}

/** What of a run its segments hand on from one to the next. */
interface Thread {
  breakers: SendStep['breakers']
  claims: number
  seconds: number
  segment: number
}

/**
 * Sends a run's changes: asks a person where one is to be asked, the canary first, then the rest in segments of
 * growing length (15 s, doubling to ten minutes), so that the run shows life early and 100,000 rows still make
 * only hundreds of events.
 */
export async function sendAll(sending: Sending): Promise<SendingEnd> {
  const { plan, staged, desk } = sending
  const isCreateOrDelete = !plan.kind.startsWith('update')
  if (staged.open > 0 && plan.approval && !plan.decided.approval) {
    const count = plan.kind === 'delete-orders' ? { count: staged.open } : {}
    if (!(await desk.ask({ what: 'approval', seconds: plan.approvalSeconds, ...count })))
      return notApproved(sending)
  }
  const thread: Thread = { breakers: {}, claims: 0, seconds: firstSegmentSeconds, segment: 1 }
  if (staged.canary.length > 0) {
    const end = await sendSome({ ...sending, thread, rows: staged.canary })
    if (end !== undefined) return end
  }
  const isAsked = plan.confirmCanary && isCreateOrDelete && !plan.decided.canary
  if (staged.open > staged.canary.length && isAsked) {
    if (!(await desk.ask({ what: 'canary', seconds: plan.approvalSeconds }))) return notApproved(sending)
  }
  return (await sendSome({ ...sending, thread })) ?? { how: 'finished', giveUp: false }
}

const stopped = { how: 'stopped', giveUp: false, why: 'stopped; the same import goes on from there' } as const

const notApproved = ({ control }: Sending): SendingEnd =>
  control.stopping ? stopped : { ...stopped, why: 'nobody approved in time; the same import asks again' }

/** Undefined where all of it was sent and settled. */
async function sendSome(
  options: Sending & { thread: Thread; rows?: number[] },
): Promise<SendingEnd | undefined> {
  const { plan, progress, show, control, thread, rows } = options
  for (;;) {
    await control.mayGoOn()
    if (control.stopping) return stopped
    progress.phase = rows === undefined ? 'sending' : 'canary'
    show()
    const step = await control.untilInterrupted(() =>
      sendImport.executeWithOptions(
        { summary: rows === undefined ? `send, part ${thread.segment}` : `canary of ${rows.length}` },
        [
          {
            plan,
            seconds: thread.seconds,
            limits: progress.limits,
            breakers: thread.breakers,
            claims: thread.claims,
            ...(rows && { rows }),
          },
        ],
      ),
    )
    if (step === 'interrupted') continue
    Object.assign(thread, { breakers: step.breakers, claims: step.claims, segment: thread.segment + 1 })
    if (rows === undefined) thread.seconds = Math.min(thread.seconds * 2, longestSegmentSeconds)
    progress.counts = step.counts
    show()
    if (step.ended === 'finished') return afterAll(options, step)
    const end = await afterStep(options, step)
    if (end !== undefined) return end
  }
}

function afterAll({ rows }: { rows?: number[] }, { canaryFailed }: SendStep): SendingEnd | undefined {
  if (rows === undefined || !canaryFailed) return undefined
  const why = `all ${rows.length} rows of the canary failed (${rows.join(', ')}), so no other was sent`
  return { how: 'finished', giveUp: true, why }
}

async function afterStep(
  { plan, progress, show, control, desk, thread }: Sending & { thread: Thread },
  step: SendStep,
): Promise<SendingEnd | undefined> {
  const { ended, nextAt, givenUp } = step
  if (ended === 'maxChanges')
    return {
      how: 'finished',
      giveUp: true,
      why: `the bound of ${progress.limits.maxChanges} changes was reached`,
    }
  if (ended === 'maxFailures')
    return { how: 'finished', giveUp: true, why: `more than ${progress.limits.maxFailures} changes failed` }
  if (ended === 'breaker' && givenUp && nextAt === undefined) {
    if (!plan.attended)
      return {
        how: 'finished',
        giveUp: true,
        why: 'too many changes failed, and so did every trial after it',
      }
    if (!(await desk.ask({ what: 'breaker', seconds: plan.approvalSeconds })))
      return control.stopping
        ? stopped
        : { how: 'finished', giveUp: true, why: 'the breaker is open, and nobody closed it in time' }
    thread.breakers = { '': { clearedAt: Date.now(), trials: 0 } }
    return undefined
  }
  if (nextAt === undefined) return undefined
  if (ended === 'breaker') progress.breakerUntil = new Date(nextAt).toISOString()
  show()
  // A stop, a pause or a person's word about a parked row are not waited out.
  const resolved = desk.resolved
  await condition(
    () => control.stopping || control.paused || desk.resolved > resolved,
    Math.max(1, nextAt - Date.now()),
  )
  delete progress.breakerUntil
  return undefined
}
