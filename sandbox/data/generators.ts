import type { RecordGenerator } from '../store.ts'
import type { Chance } from './random.ts'
import { awkwardNames, decimal, drawAmount, notes, phones, plainNames, streets, textId } from './values.ts'
import { DAY, toDate, toTimestamp } from './times.ts'

export const countries = [
  { id: 'CL', name: 'Chile', code: '+56', has_regulation: true, currencies: ['CLP', 'CLF'] },
  { id: 'CO', name: 'Colombia', code: '+57', has_regulation: true, currencies: ['COP'] },
  { id: 'MX', name: 'México', code: '+52', has_regulation: false, currencies: ['MXN', 'USD'] },
]
const states = [
  { id: 13, name: 'Región Metropolitana', country: 'CL' },
  { id: 11, name: 'Bogotá, D.C.', country: 'CO' },
  { id: 9, name: 'Ciudad de México', country: 'MX' },
]
const currencies = ['CLP', 'COP', 'MXN']

export function customerGenerator(testMode: boolean): RecordGenerator {
  return {
    idOf: (index) => textId('cus', index),
    fields: ({ index, id, stamps }, chance) => {
      const awkward = chance.happens(0.08)
      const name = awkward ? chance.pick(awkwardNames) : `${chance.pick(plainNames)} ${index}`
      const rut = 50_000_000 + ((index * 7919) % 49_000_000)
      const contacts = Array.from({ length: chance.pick([0, 1, 1, 2]) }, (_, place) => ({
        id: `con_${String(id).slice(4)}_${place}`,
        name: chance.pick(plainNames),
        email: `contacto${place}.${index}@ejemplo.cl`,
        customer: id,
        orgunit: chance.happens(0.2) ? `org_${index % 50}` : null,
        phone: chance.pick(phones)?.slice(0, 12) ?? null,
        invoicing: chance.happens(0.8),
        collections: chance.happens(0.7),
        ...stamps,
      }))
      return {
        id,
        name,
        email: chance.happens(0.03) ? '' : `pagos+${index}@ejemplo.cl`,
        reference: awkward ? '' : `C-${String(index).padStart(7, '0')}`,
        tax_id: chance.happens(0.05) ? null : `${rut}-${chance.pick(['K', '0', '3', '7'])}`,
        contacts,
        test_mode: testMode,
        ...stamps,
        ...customerDetails(chance),
      }
    },
  }
}

function customerDetails(chance: Chance) {
  const country = chance.below(3)
  return {
    address: chance.pick(streets),
    country: chance.happens(0.1) ? null : countries[country],
    // Some records omit a key, others send null: both mean "not known".
    ...(chance.happens(0.15) ? {} : { state: chance.happens(0.2) ? null : states[country] }),
    currency: currencies[country],
    phone: chance.pick(phones),
    ...(chance.happens(0.2) ? {} : { website: chance.pick(['https://ejemplo.cl/?a=1&b="2"', '', null]) }),
    zip_code: chance.pick(['0075', '7500000', '110221', '', null]),
    manager: chance.pick(notes),
    tax_settings: chance.pick([{}, null, { regime: 'general', rates: [19, 0.1], exempt: false }]),
    metadata: chance.pick([
      {},
      { crm: { id: '00Q', tags: ['vip', 'a,b', '"x"'] }, since: 2019 },
      { note: 'uno\ndos', empty: '', none: null, score: drawAmount(chance) },
    ]),
    send_invoices: chance.happens(0.9),
    send_collections: chance.happens(0.7),
    send_vouchers: chance.happens(0.3),
    status: chance.happens(0.9) ? 'active' : 'inactive',
    sources: Array.from({ length: chance.below(3) }, () => textId('src', chance.below(5000))),
    aggregations: {
      sales: drawAmount(chance),
      sales_current_period: drawAmount(chance),
      balance: drawAmount(chance),
    },
    // Fields the interface does not document.
    segment: chance.pick(['pyme', 'corporativo', null]),
    ...(chance.happens(0.3) ? { loyalty: { tier: chance.below(4), points: drawAmount(chance) } } : {}),
  }
}

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
    fields: ({ id, created, updated, stamps }, chance) => {
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
        ...subscriptionDetails(chance),
      }
    },
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

function subscriptionDetails(chance: Chance) {
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

/** Plans have no `test_mode`: the interface documents none. */
export const planGenerator: RecordGenerator = {
  idOf: (index) => textId('plan', index),
  fields: ({ index, id, updated, stamps }, chance) => {
    const archived = chance.happens(0.15)
    return {
      id,
      product: textId('prod', index % 40),
      name: chance.happens(0.1) ? `Plan "${index}", mensual` : `Plan ${index}`,
      sku: chance.happens(0.3) ? null : `SKU-${String(index).padStart(4, '0')}`,
      status: archived ? 'archived' : 'active',
      archived: archived ? toTimestamp(updated) : null,
      ...stamps,
      description: chance.pick(notes),
      frequency: chance.pick(['monthly', 'yearly', 'weekly']),
      currency: chance.pick(['CLP', 'CLF', 'USD']),
      amount: drawAmount(chance),
      exempt: chance.happens(0.1),
      ...(chance.happens(0.2) ? {} : { usage_scheme: 'licensed', usage_aggregation: 'last_record' }),
      tiers_mode: chance.happens(0.5) ? 'package' : null,
      tiers: Array.from({ length: chance.below(4) }, (_, tier) => ({
        amount: drawAmount(chance),
        quantity_from: decimal(`${tier * 100}.0`),
        quantity_to: tier === 2 ? null : decimal(`${tier * 100 + 99}.5`),
        amount_scheme: 'flat',
        unit_scheme: 'all_units',
      })),
      unit_label: chance.pick(['u', 'GB', 'm³', '']),
    }
  },
}

/** Ids are integers, as in tables with a serial key. */
const FIRST_ID = 1001

export function retentionGenerator(testMode: boolean): RecordGenerator {
  return {
    idOf: (index) => FIRST_ID + index,
    fields: ({ index, id, created, stamps }, chance) => ({
      id,
      supplier: textId('sup', index % 300),
      document: chance.pick([7, 8, 20]),
      number: 1 + Math.floor(index / 300),
      date: toDate(created),
      total: drawAmount(chance),
      status: chance.pick(['draft', 'finalized', 'finalized', 'cancelled']),
      lines: Array.from({ length: 1 + chance.below(3) }, (_, place) => ({
        id: Number(id) * 10 + place,
        name: chance.pick(plainNames),
        amount: drawAmount(chance),
        quantity: decimal(`${1 + chance.below(5)}.000`),
        description: chance.pick(notes),
        exempt: chance.happens(0.1),
        tax_percent: decimal('10.75'),
        ...(chance.happens(0.2) ? { discount: decimal('5.00'), discount_scheme: '%' } : {}),
        total: drawAmount(chance),
      })),
      test_mode: testMode,
      ...stamps,
      amount: drawAmount(chance),
      exempt: chance.happens(0.7) ? null : decimal('0.00'),
      tax: drawAmount(chance),
      tax_percent: chance.pick([null, decimal('19.0')]),
      subtotal: drawAmount(chance),
      discount: null,
      discount_scheme: chance.pick([null, '%', '$']),
      biller_status: chance.pick(['pending', 'accepted', '']),
      tax_agency: chance.pick([{}, { track_id: 123456789, state: 'EPR' }, null]),
      ...(chance.happens(0.3) ? {} : { local_file: 'https://ejemplo.cl/r.pdf?x=1,2' }),
      imported: chance.happens(0.1),
      bulk: chance.pick([null, 1, 2, 3]),
    }),
  }
}

export function creditNoteGenerator(testMode: boolean): RecordGenerator {
  return {
    idOf: (index) => 501 + index,
    fields: ({ index, id, created, stamps }, chance) => ({
      id,
      invoice: textId('inv', index * 3),
      number: 7000 + index,
      date: toDate(created),
      ...stamps,
      document: chance.pick([null, 61]),
      note: chance.pick(notes),
      internal_note: chance.pick(notes),
      total: drawAmount(chance),
      retention: decimal('0.00'),
      status: chance.pick(['draft', 'finalized', 'cancelled']),
      biller_status: 'accepted',
      tax_agency: { state: 'EPR' },
      local_file: null,
      imported: false,
      test_mode: testMode,
      lines: [
        {
          id: chance.below(1000),
          name: 'Servicio',
          amount: drawAmount(chance),
          quantity: decimal('1.0'),
          code: '001',
        },
      ],
    }),
  }
}

export function cancellationGenerator(testMode: boolean): RecordGenerator {
  return {
    idOf: (index) => 301 + index,
    fields: ({ index, id, created, stamps }, chance) => ({
      id,
      retention: 1001 + index * 2,
      number: 90 + index,
      date: toDate(created),
      ...stamps,
      document: 9,
      note: chance.pick(notes),
      internal_note: chance.pick(notes),
      biller_status: 'pending',
      tax_agency: {},
      local_file: null,
      imported: false,
      test_mode: testMode,
    }),
  }
}

/**
 * Generates records without fields of their own: the interface shows only an order's id in its path, and
 * products and addons only as sent.
 */
export function bareGenerator(prefix: string): RecordGenerator {
  return {
    idOf: (index) => textId(prefix, index),
    fields: ({ id, stamps }) => ({ id, ...stamps, object: prefix }),
  }
}
