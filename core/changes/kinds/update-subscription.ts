import { subscription } from '../../billing/resources/subscriptions.ts'
import type { ChangeKind } from '../change-kind.ts'
import { targetOf } from '../target.ts'

/**
 * The documentation does not say whether the service adds to these or replaces them, and a coupon may be redeemed each
 * time: an update of one of them is not repeated without a person.
 */
const notRepeatable = ['lines', 'addons', 'references', 'coupon'] as const

export const updateSubscription: ChangeKind = {
  name: 'update-subscription',
  keyOf: (body) => targetOf(body).id,
  repeats: 'otherBody',
  answered: 'updated',
  stores: subscription,
  send: ({ billing, body, options }) => {
    const { id, fields } = targetOf(body)
    return billing.updateSubscription(id, fields, options)
  },
  whenUnknown: (body) => (notRepeatable.some((field) => field in body) ? 'park' : 'sendAgain'),
  traitsOf: (body) => ({
    signature: Object.keys(body).toSorted().join(' '),
    lines: Array.isArray(body['lines']) ? body['lines'].length : 0,
    amount: '',
  }),
}
