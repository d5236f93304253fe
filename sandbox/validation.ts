import { isDate } from './data/times.ts'
import { numberText } from './data/values.ts'
import type { Fields } from './store.ts'

/** The valid values of a body's field, and its default. */
export interface Rule {
  type: 'text' | 'email' | 'integer' | 'decimal' | 'boolean' | 'date' | 'choice' | 'list'
  required?: true
  nullable?: true
  maxLength?: number
  min?: number
  values?: readonly string[]
  /** Stored on creation if the field is absent; null if not specified. */
  default?: unknown
  /** The rules for a list's items. */
  items?: Rules
}

export type Rules = Readonly<Record<string, Rule>>

/** Errors in the form of Django REST framework: by field, and for lists by item. */
export type Complaints = Record<string, unknown>

/**
 * Validates a body as a serializer does; ignores unknown and read-only fields. `partial`: nothing is
 * required.
 */
export function validate(options: { rules: Rules; body: unknown; partial: boolean }): {
  values: Fields
  errors: Complaints | undefined
} {
  const { rules, body, partial } = options
  if (typeof body !== 'object' || body === null || Array.isArray(body) || JSON.isRawJSON(body)) {
    const words = `Invalid data. Expected a dictionary, but got ${pythonType(body)}.`
    return { values: {}, errors: { non_field_errors: [words] } }
  }
  const values: Fields = {}
  const errors: Complaints = {}
  for (const [field, rule] of Object.entries(rules)) {
    const sent = (body as Fields)[field]
    if (sent === undefined) {
      if (rule.required && !partial) errors[field] = ['This field is required.']
      else if (!partial && rule.default !== undefined) values[field] = rule.default
      continue
    }
    const checked = check(rule, sent)
    if ('error' in checked) errors[field] = checked.error
    else values[field] = checked.value
  }
  return { values, errors: Object.keys(errors).length === 0 ? undefined : errors }
}

type Checked = { value: unknown } | { error: unknown }

const wrong = (words: string): Checked => ({ error: [words] })

function check(rule: Rule, sent: unknown): Checked {
  if (sent === null) return rule.nullable ? { value: null } : wrong('This field may not be null.')
  switch (rule.type) {
    case 'text':
    case 'email':
      return checkText(rule, sent)
    case 'integer':
    case 'decimal':
      return checkNumber(rule, sent)
    case 'boolean':
      return typeof sent === 'boolean' ? { value: sent } : wrong('Must be a valid boolean.')
    case 'date':
      if (typeof sent === 'string' && isDate(sent)) return { value: sent }
      return wrong('Date has wrong format. Use one of these formats instead: YYYY-MM-DD.')
    case 'choice':
      if (typeof sent === 'string' && rule.values?.includes(sent)) return { value: sent }
      return wrong(`"${typeof sent === 'string' ? sent : JSON.stringify(sent)}" is not a valid choice.`)
    default:
      return checkList(rule, sent)
  }
}

function checkText(rule: Rule, sent: unknown): Checked {
  const number = typeof sent === 'string' ? undefined : numberText(sent)
  if (typeof sent !== 'string' && number === undefined) return wrong('Not a valid string.')
  const text = (number ?? String(sent)).trim()
  if (text === '' && rule.required) return wrong('This field may not be blank.')
  if (rule.type === 'email' && text !== '' && !/^[^\s@]+@[^\s@]+\.[^\s@.]+$/.test(text))
    return wrong('Enter a valid email address.')
  if (rule.maxLength !== undefined && Array.from(text).length > rule.maxLength)
    return wrong(`Ensure this field has no more than ${rule.maxLength} characters.`)
  return { value: text }
}

function checkNumber(rule: Rule, sent: unknown): Checked {
  const text = numberText(sent)
  if (rule.type === 'integer') {
    if (text === undefined || !/^-?\d+(\.0*)?$/.test(text)) return wrong('A valid integer is required.')
    const number = Number(text)
    return { value: Number.isSafeInteger(number) ? number : JSON.rawJSON(text.replace(/\..*/, '')) }
  }
  if (text === undefined) return wrong('A valid number is required.')
  if (rule.min !== undefined && Number(text) < rule.min)
    return wrong(`Ensure this value is greater than or equal to ${rule.min}.`)
  return { value: JSON.rawJSON(plainNumber(text)) }
}

/** Rewrites text that Django accepts as a number as JSON: no leading plus or zeros, no bare point. */
function plainNumber(text: string): string {
  const [, sign, whole, fraction, exponent] = /^([+-]?)(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i.exec(text) ?? []
  const digits = (whole ?? '').replace(/^0+(?=\d)/, '') || '0'
  return `${sign === '-' ? '-' : ''}${digits}${fraction ? `.${fraction}` : ''}${exponent ? `e${exponent}` : ''}`
}

function checkList(rule: Rule, sent: unknown): Checked {
  if (!Array.isArray(sent))
    return { error: { non_field_errors: [`Expected a list of items but got type "${pythonType(sent)}".`] } }
  const checked = sent.map((item) => validate({ rules: rule.items ?? {}, body: item, partial: false }))
  // Valid items get an empty object, so that the others keep their positions.
  if (checked.some(({ errors }) => errors !== undefined))
    return { error: checked.map(({ errors }) => errors ?? {}) }
  return { value: checked.map(({ values }) => values) }
}

function pythonType(value: unknown): string {
  if (value === null || value === undefined) return 'NoneType'
  if (Array.isArray(value)) return 'list'
  const names: Record<string, string> = { string: 'str', boolean: 'bool', object: 'dict' }
  const number = numberText(value)
  if (typeof value !== 'string' && number !== undefined) return /[.e]/i.test(number) ? 'float' : 'int'
  return names[typeof value] ?? typeof value
}

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
