import type { RecordGenerator } from '../store.ts'
import type { Chance } from './random.ts'
import { DAY, toDate, toTimestamp } from './times.ts'
import { decimal, notes, textId } from './values.ts'

export const statuses = ['active', 'paused', 'cancelled', 'finalized', 'needs_attention']
export const attentionReasons = [
  'biller_issue',
  'gateway_issue',
  'reference_expired',
  'without_usage_records',
  'processing_issue',
  'without_reference',
]

/** The other records that a subscription can reference, by number. */
interface Neighbours {
  customers: number
  plans: number
}

export function subscriptionGenerator(options: {
  testMode: boolean
  neighbours: Neighbours
  /** The share in `needs_attention`. */
  needsAttention: number
}): RecordGenerator {
  const { testMode, neighbours, needsAttention } = options
  return {
    idOf: (index) => textId('sub', index),
    own: ({ id, created, updated, stamps }, chance) => {
      const lines = Array.from({ length: 1 + chance.below(3) }, (_, place) => ({
        id: `${String(id).replace('sub', 'sli')}_${place}`,
        plan: textId('plan', chance.below(Math.max(1, neighbours.plans))),
        quantity: 1 + chance.below(20),
        ...(chance.happens(0.2) ? { coupon: textId('cpn', chance.below(30)) } : {}),
        coupon_redemptions: chance.below(3),
        ...stamps,
      }))
      return {
        id,
        customer: textId('cus', chance.below(Math.max(1, neighbours.customers))),
        date_start: toDate(created),
        next_billing: toDate(created + DAY * (30 + chance.below(2500))),
        lines,
        ...stateFields(chance, { updated, needsAttention }),
        test_mode: testMode,
        ...stamps,
      }
    },
    shared: sharedFields,
  }
}

function stateFields(chance: Chance, options: { updated: number; needsAttention: number }) {
  const status = chance.happens(options.needsAttention)
    ? 'needs_attention'
    : chance.pick(['active', 'active', 'active', 'active', 'paused', 'cancelled', 'finalized'])
  const at = (state: string) => (status === state ? toTimestamp(options.updated) : null)
  const only = <T>(state: string, value: T) => (status === state ? value : null)
  return {
    status,
    needs_attention: at('needs_attention'),
    needs_attention_reason: only('needs_attention', chance.pick(attentionReasons)),
    cancelled: at('cancelled'),
    cancel_reason: only('cancelled', chance.pick(['custom', 'no_card', 'not_paid', 'not_specified'])),
    paused: at('paused'),
    paused_reason: only('paused', chance.pick(['not_specified', 'custom'])),
    pause_until: only('paused', toDate(options.updated + 60 * DAY)),
  }
}

function sharedFields(chance: Chance) {
  const charges = chance.happens(0.4)
  return {
    document: chance.pick([1, 7, 33, 61]),
    previous_billing: chance.happens(0.3) ? null : '2025-12-01',
    billing_cycles: chance.pick([null, 12, 24]),
    next_billing_cycle: 1 + chance.below(30),
    expiration_days: chance.pick([10, 15, 30]),
    collection_scheme: charges ? 'charge_payment' : 'send_invoice',
    default_source: charges ? textId('src', chance.below(5000)) : null,
    custom_change: chance.pick([null, decimal('1.0'), decimal('36512.480000')]),
    coupon: chance.happens(0.1) ? textId('cpn', chance.below(30)) : null,
    coupon_redemptions: chance.below(4),
    require_reference: chance.happens(0.2),
    note: chance.pick(notes),
    orgunit: chance.pick([null, 4, 17]),
    ...(chance.happens(0.3) ? {} : { status_description: chance.pick(notes) }),
    addons: Array.from({ length: chance.below(2) }, () => ({
      addon: textId('add', chance.below(20)),
      quantity: 1 + chance.below(3),
      addon_redemptions: chance.below(2),
      rates: [{ billing_cycle: 1, percentage: decimal('12.50'), description: 'Alza, "anual"' }],
    })),
    references: chance.happens(0.3)
      ? [{ date: '2024-02-29', document: '801', serial: '=OC-0042', date_end: null, description: '' }]
      : [],
    billing_engine: chance.pick(['v1', 'v2']),
  }
}
