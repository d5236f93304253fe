import { type Answer, json, notFound } from '../answer.ts'
import { toTimestamp } from '../data/times.ts'
import type { Call } from '../service.ts'
import type { Fields, StoredRecord } from '../store/stored-record.ts'
import { validate } from '../validation.ts'
import { resumeRules, subscriptionRules } from '../write-rules.ts'
import { asStored, storedAnswer } from './stored-answer.ts'

/** Updates a subscription; absent fields stay unchanged. */
export function updateSubscription(call: Call): Answer {
  const { subscriptions } = call.world
  const record = subscriptions.get(call.id)
  if (record === undefined) return notFound()
  const { values, errors } = validate({ rules: subscriptionRules, body: call.body, partial: true })
  if (errors !== undefined) return json(400, errors)
  const merged = { ...subscriptions.source.fields(record), ...values }
  if (merged.collection_scheme === 'charge_payment' && !merged.default_source)
    return json(400, { default_source: ['This field is required when collection_scheme is charge_payment.'] })
  const fields = asStored(call, withLineIds(call, record, values))
  const updated = subscriptions.update({ id: record.id, fields, cause: call.cause })
  return updated === undefined ? notFound() : storedAnswer(200, subscriptions, updated)
}

/** Gives new lines new ids: a service that replaces lines cannot match them with the old ones. */
function withLineIds(call: Call, record: StoredRecord, values: Fields): Fields {
  if (!Array.isArray(values.lines)) return values
  const stamp = toTimestamp(call.service.clock.now())
  const serial = call.service.audit.mark + 1
  const lines = values.lines.map((line: Fields, place) => ({
    id: `${String(record.id).replace('sub', 'sli')}_${serial}_${place}`,
    coupon_redemptions: 0,
    created: stamp,
    updated: stamp,
    ...line,
  }))
  return { ...values, lines }
}

const active = { status: 'active', needs_attention: null, needs_attention_reason: null }

/**
 * Resumes a subscription: it ends in `active`, or, if a fault makes it fall back, in `needs_attention`
 * again.
 */
export function resumeSubscription(call: Call): Answer {
  const { service, world, struck } = call
  const { subscriptions } = world
  const record = subscriptions.get(call.id)
  if (record === undefined) return notFound()
  const { values, errors } = validate({ rules: resumeRules, body: call.body, partial: true })
  if (errors !== undefined) return json(400, errors)
  const before = subscriptions.source.fields(record)
  if (before.status !== 'needs_attention' && service.settings.resumeActive === 'refuse')
    return json(400, { non_field_errors: ['Only a subscription that needs attention can be resumed.'] })

  const fall = struck.find('fallBack')
  const cause = { ...call.cause, effect: 'resume' }
  const back = () => ({
    status: 'needs_attention',
    needs_attention: toTimestamp(service.clock.now()),
    needs_attention_reason: fall?.reason ?? before.needs_attention_reason ?? 'processing_issue',
  })
  const fellAtOnce = fall !== undefined && fall.afterSeconds === undefined
  const fields = { ...values, ...(fellAtOnce ? back() : active) }
  const resumed = subscriptions.update({ id: record.id, fields, cause })
  if (fall?.afterSeconds !== undefined) {
    const fallBack = () =>
      void subscriptions.update({ id: record.id, fields: back(), cause: { ...cause, effect: 'fall back' } })
    service.later.schedule(fall.afterSeconds, fallBack)
  }
  return resumed === undefined ? notFound() : storedAnswer(200, subscriptions, resumed)
}
