import { activityInfo, cancellationSignal, heartbeat } from '@temporalio/activity'
import { ApplicationFailure } from '@temporalio/common'
import type { ActivityDeps } from './deps.ts'
import { toBody, wants, type Notice } from './notice.ts'
import { postNotice, type Delivery } from './post-notice.ts'

/** Who of the receivers has been settled with, by place in NOTIFY_URL; kept from one try to the next. */
interface Settled {
  delivered: number[]
  refused: { receiver: number; why: string }[]
}

/**
 * Tells every receiver that wants to hear of it, each until it has taken it or refused it. What is repeated after a
 * crash carries the same event id.
 */
export function createSendNotice(deps: ActivityDeps) {
  return async function sendNotice(notice: Notice): Promise<string> {
    const { receivers, ui, identity } = deps
    const body = toBody({ notice, sender: identity, ui })
    const settled = settledSoFar()
    const waiting: Delivery[] = []
    for (const [receiver, { url, level }] of receivers.entries()) {
      if (!wants(level, notice.kind) || isSettled({ settled, receiver })) continue
      const delivery = await postNotice({ url, body, id: notice.id, signal: cancellationSignal() })
      if (delivery.outcome === 'delivered') settled.delivered.push(receiver)
      else if (delivery.outcome === 'refused') settled.refused.push({ receiver, why: delivery.why })
      else waiting.push(delivery)
      // Attached to the failure of this try too, so that the next one tells only the others.
      heartbeat(settled)
    }
    if (waiting.length > 0) throw toLater(waiting)
    const { delivered, refused } = settled
    if (refused.length > 0) {
      const message = `Not delivered: ${refused.map(({ why }) => why).join('; ')}. Mend NOTIFY_URL.`
      throw ApplicationFailure.nonRetryable(message, 'NoticeRefused')
    }
    return `told ${delivered.length} of ${receivers.length} receivers`
  }
}

function settledSoFar(): Settled {
  const { heartbeatDetails } = activityInfo()
  return (heartbeatDetails as Settled | undefined) ?? { delivered: [], refused: [] }
}

const isSettled = ({ settled, receiver }: { settled: Settled; receiver: number }): boolean =>
  settled.delivered.includes(receiver) || settled.refused.some((one) => one.receiver === receiver)

function toLater(waiting: readonly Delivery[]): ApplicationFailure {
  const whys = waiting.flatMap((one) => ('why' in one ? [one.why] : []))
  const asked = waiting.flatMap((one) => ('afterMs' in one && one.afterMs !== undefined ? [one.afterMs] : []))
  return ApplicationFailure.create({
    message: `Not delivered yet: ${whys.join('; ')}.`,
    type: 'NoticeWaits',
    ...(asked.length > 0 && { nextRetryDelay: Math.max(...asked) }),
  })
}
