import { ApplicationFailure } from '@temporalio/common'
import { createHash } from 'node:crypto'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'
import { toBody, wants, type Notification } from '../../core/notifications/notification.ts'
import { postNotice, type Delivery } from '../../core/notifications/post.ts'

/** How it stands with each receiver, kept from one try to the next. */
type Stands = Record<string, Stand>
type Stand = Delivery & {
  /** It asked to be left alone until then; ms since 1970. */
  notBefore?: number
}

/**
 * Tells every receiver that wants to hear of it, each until it has taken it or refused it. What is repeated after a
 * crash carries the same event id.
 */
export function createSendNotification(deps: ActivityDeps) {
  return async function sendNotification(
    { signal, lastReport, report }: StepContext,
    notice: Notification,
  ): Promise<string> {
    const { receivers, ui, identity } = deps
    const body = toBody({ notice, sender: identity, ui })
    const stands: Stands = { ...(lastReport as Stands | undefined) }
    const wanting = receivers
      .filter(({ level }) => wants(level, notice.kind))
      .map(({ url }) => ({ url, key: keyOf({ url, id: notice.id }) }))
    // One that hangs, or wants to be left alone, keeps no other waiting.
    const tells = wanting
      .filter(({ key }) => isDue(stands[key]))
      .map(async ({ url, key }) => {
        const delivery = await postNotice({ url, body, id: notice.id, signal })
        stands[key] = toStand(delivery)
        // Attached to the failure of this try too, so that the next one tells only the others.
        report(() => stands)
      })
    await Promise.all(tells)
    const now = wanting.flatMap(({ key }) => stands[key] ?? [])
    const waiting = now.filter((stand) => stand.outcome === 'later')
    if (waiting.length > 0) throw toLater(waiting)
    const refused = now.filter((stand) => stand.outcome === 'refused')
    if (refused.length > 0) {
      const message = `Not delivered: ${refused.map(({ why }) => why).join('; ')}. Mend NOTIFY_URL.`
      throw ApplicationFailure.nonRetryable(message, 'NoticeRefused')
    }
    return `told ${now.length} of ${receivers.length} receivers`
  }
}

/** NOTIFY_URL may change between two tries, so its order says nothing; and an address may not leave this worker. */
const keyOf = ({ url, id }: { url: string; id: string }): string =>
  createHash('sha256').update(`${id} ${url}`).digest('hex').slice(0, 16)

const isDue = (stand: Stand | undefined): boolean =>
  stand === undefined || (stand.outcome === 'later' && (stand.notBefore ?? 0) <= Date.now())

const toStand = (delivery: Delivery): Stand =>
  delivery.outcome === 'later' && delivery.afterMs !== undefined
    ? { ...delivery, notBefore: Date.now() + delivery.afterMs }
    : delivery

function toLater(waiting: readonly (Stand & { outcome: 'later' })[]): ApplicationFailure {
  const inMs = waiting.map(({ notBefore = 0 }) => notBefore - Date.now())
  const soonest = Math.min(...inMs)
  return ApplicationFailure.create({
    message: `Not delivered yet: ${waiting.map(({ why }) => why).join('; ')}.`,
    type: 'NoticeWaits',
    // Where one of them named no time, the usual growing waits hold.
    ...(soonest > 0 && { nextRetryDelay: soonest }),
  })
}
