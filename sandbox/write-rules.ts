import type { Rules } from './validation.ts'

/** The writable fields of interface section 2, with the limits of section 8. */

const amounts = {
  amount: { type: 'decimal', nullable: true, default: null },
  exempt: { type: 'decimal', nullable: true, default: null },
  tax: { type: 'decimal', nullable: true, default: null },
  tax_percent: { type: 'decimal', nullable: true, default: null },
  subtotal: { type: 'decimal', nullable: true, default: null },
  total: { type: 'decimal', nullable: true, default: null },
  discount: { type: 'decimal', nullable: true, default: null },
  discount_scheme: { type: 'choice', values: ['%', '$'], nullable: true, default: null },
} as const satisfies Rules

const retentionLine: Rules = {
  name: { type: 'text', nullable: true },
  amount: { type: 'decimal', nullable: true },
  quantity: { type: 'decimal', nullable: true },
  description: { type: 'text', nullable: true },
  exempt: { type: 'boolean', default: false },
  tax: { type: 'decimal', nullable: true },
  tax_percent: { type: 'decimal', nullable: true },
  discount: { type: 'decimal', nullable: true },
  discount_scheme: { type: 'choice', values: ['%', '$'], nullable: true },
}

export const retentionRules: Rules = {
  supplier: { type: 'text', required: true },
  document: { type: 'integer', required: true },
  number: { type: 'integer', required: true },
  date: { type: 'date', required: true },
  lines: { type: 'list', required: true, items: retentionLine },
  ...amounts,
}

export const productRules: Rules = {
  name: { type: 'text', required: true, maxLength: 80 },
  unit_label: { type: 'text', required: true, maxLength: 12 },
  status: { type: 'choice', values: ['active', 'archived'], default: 'active' },
}

export const addonRules: Rules = {
  name: { type: 'text', required: true, maxLength: 56 },
  description: { type: 'text', required: true, maxLength: 256 },
  currency: { type: 'text', required: true },
  amount: { type: 'decimal', required: true },
  sku: { type: 'text', nullable: true, maxLength: 32, default: null },
  apply_scheme: { type: 'choice', values: ['one_time', 'recurring'], default: 'one_time' },
  duration_times: { type: 'integer', nullable: true, default: null },
  unit_label: { type: 'text', nullable: true, maxLength: 4, default: null },
  status: { type: 'choice', values: ['active', 'archived'], default: 'active' },
}

export const contactRules: Rules = {
  name: { type: 'text', required: true, maxLength: 64 },
  email: { type: 'email', required: true },
  customer: { type: 'text', nullable: true },
  orgunit: { type: 'text', nullable: true },
  phone: { type: 'text', nullable: true, maxLength: 12 },
  invoicing: { type: 'boolean' },
  collections: { type: 'boolean' },
}

const rate: Rules = {
  billing_cycle: { type: 'integer' },
  percentage: { type: 'decimal' },
  description: { type: 'text', nullable: true },
}

export const subscriptionRules: Rules = {
  customer: { type: 'text', required: true },
  document: { type: 'integer', required: true },
  date_start: { type: 'date', required: true },
  next_billing: { type: 'date', required: true },
  lines: {
    type: 'list',
    required: true,
    items: {
      plan: { type: 'text' },
      quantity: { type: 'integer' },
      coupon: { type: 'text', nullable: true },
    },
  },
  previous_billing: { type: 'date', nullable: true },
  billing_cycles: { type: 'integer', nullable: true },
  expiration_days: { type: 'integer' },
  collection_scheme: { type: 'choice', values: ['send_invoice', 'charge_payment'] },
  default_source: { type: 'text', nullable: true },
  custom_change: { type: 'decimal', nullable: true, min: 1 },
  coupon: { type: 'text', nullable: true },
  require_reference: { type: 'boolean' },
  note: { type: 'text', nullable: true, maxLength: 100 },
  orgunit: { type: 'integer', nullable: true },
  status_description: { type: 'text', nullable: true, maxLength: 512 },
  addons: {
    type: 'list',
    items: { addon: { type: 'text' }, quantity: { type: 'integer' }, rates: { type: 'list', items: rate } },
  },
  references: {
    type: 'list',
    items: {
      date: { type: 'date', nullable: true },
      document: { type: 'text', nullable: true },
      serial: { type: 'text', nullable: true },
      date_end: { type: 'date', nullable: true },
      description: { type: 'text', nullable: true },
    },
  },
}

export const resumeRules: Rules = { next_billing: { type: 'date' } }
