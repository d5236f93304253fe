import { ApplicationFailure } from '@temporalio/common'
import { createHash } from 'node:crypto'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'
import { toBody, accepts, type Notification } from '../../core/notifications/notification.ts'
import { postNotification, type Delivery } from '../../core/notifications/post.ts'

/** The delivery state of each channel, kept from one attempt to the next. */
type DeliveryStates = Record<string, DeliveryState>
type DeliveryState = Delivery & {
  /** The channel asked to wait until this time; ms since 1970. */
  notBefore?: number
}

/**
 * Notifies every channel that accepts the kind, until each has accepted or refused the notification. Deliveries repeated
 * after a crash have the same event id.
 */
export function createSendNotification(deps: ActivityDeps) {
  return async function sendNotification(
    { signal, lastReport, report }: StepContext,
    notification: Notification,
  ): Promise<string> {
    const { channels, ui, identity } = deps
    const body = toBody({ notification, sender: identity, ui })
    const states: DeliveryStates = { ...(lastReport as DeliveryStates | undefined) }
    const accepting = channels
      .filter(({ level }) => accepts(level, notification.kind))
      .map(({ url }) => ({ url, key: keyOf({ url, id: notification.id }) }))
    // A channel that hangs or asks to wait does not delay the others.
    const posts = accepting
      .filter(({ key }) => isDue(states[key]))
      .map(async ({ url, key }) => {
        const delivery = await postNotification({ url, body, id: notification.id, signal })
        states[key] = toState(delivery)
        // Kept after a failure, too, so that the next attempt notifies only the others.
        report(() => states)
      })
    await Promise.all(posts)
    const current = accepting.flatMap(({ key }) => states[key] ?? [])
    const waiting = current.filter((state) => state.outcome === 'later')
    if (waiting.length > 0) throw toLater(waiting)
    const refused = current.filter((state) => state.outcome === 'refused')
    if (refused.length > 0) {
      const message = `Not delivered: ${refused.map(({ why }) => why).join('; ')}. Fix NOTIFY_URL.`
      throw ApplicationFailure.nonRetryable(message, 'NotificationRefused')
    }
    return `notified ${current.length} of ${channels.length} channels`
  }
}

/**
 * Identifies a channel without its URL, which must not leave this worker. A position would not do, because
 * NOTIFY_URL may change between attempts.
 */
const keyOf = ({ url, id }: { url: string; id: string }): string =>
  createHash('sha256').update(`${id} ${url}`).digest('hex').slice(0, 16)

const isDue = (state: DeliveryState | undefined): boolean =>
  state === undefined || (state.outcome === 'later' && (state.notBefore ?? 0) <= Date.now())

const toState = (delivery: Delivery): DeliveryState =>
  delivery.outcome === 'later' && delivery.afterMs !== undefined
    ? { ...delivery, notBefore: Date.now() + delivery.afterMs }
    : delivery

function toLater(waiting: readonly (DeliveryState & { outcome: 'later' })[]): ApplicationFailure {
  const inMs = waiting.map(({ notBefore = 0 }) => notBefore - Date.now())
  const soonest = Math.min(...inMs)
  return ApplicationFailure.create({
    message: `Not delivered yet: ${waiting.map(({ why }) => why).join('; ')}.`,
    type: 'NotificationDelayed',
    // If any channel named no time, Temporal's own backoff applies.
    ...(soonest > 0 && { nextRetryDelay: soonest }),
  })
}
