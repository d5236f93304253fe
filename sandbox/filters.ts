import { Big } from 'big.js'
import { isDate, parseTimestamp } from './data/times.ts'
import { attentionReasons, statuses } from './data/generators.ts'
import { numberText } from './data/values.ts'
import type { FaultOf } from './faults.ts'
import type { ListName } from './options.ts'
import type { Collection, Fields, StoredRecord, Term, World } from './store.ts'

/** A filter of interface section 4.2: how to parse its value, and what to compare in a record. */
interface Filter {
  kind: 'text' | 'integer' | 'number' | 'date' | 'timestamp' | 'choice' | 'contains' | 'from' | 'to'
  values?: readonly string[]
  /** Default: the field with the filter's name. */
  valuesOf?: (fields: Fields) => readonly unknown[]
}

const listOf = (value: unknown): Fields[] => (Array.isArray(value) ? value : [])

const filters: Record<ListName, Readonly<Record<string, Filter>>> = {
  subscriptions: {
    customer: { kind: 'text' },
    status: { kind: 'choice', values: statuses },
    next_billing: { kind: 'date' },
    date_start: { kind: 'date' },
    document: { kind: 'integer' },
    lines: { kind: 'text', valuesOf: ({ lines }) => listOf(lines).map((line) => line.id) },
    addons: { kind: 'text', valuesOf: ({ addons }) => listOf(addons).map(({ addon }) => addon) },
    coupon: { kind: 'text' },
    cancelled: { kind: 'timestamp' },
    cancel_reason: { kind: 'text' },
    paused: { kind: 'timestamp' },
    paused_reason: { kind: 'text' },
    needs_attention: { kind: 'timestamp' },
    needs_attention_reason: { kind: 'choice', values: attentionReasons },
  },
  customers: {
    country: { kind: 'text', valuesOf: ({ country }) => [(country as Fields | null)?.id] },
    email: { kind: 'contains' },
    name: { kind: 'contains' },
    tax_id: { kind: 'contains' },
    created: { kind: 'timestamp' },
    created__gte: { kind: 'from' },
    created__lte: { kind: 'to' },
    subscriptions: { kind: 'text', valuesOf: ({ id }) => [id] },
    sources: { kind: 'text', valuesOf: ({ sources }) => listOf(sources) },
  },
  retentions: {
    supplier: { kind: 'text' },
    document: { kind: 'integer' },
    number: { kind: 'integer' },
    date: { kind: 'date' },
    total: { kind: 'number' },
    bulk: { kind: 'integer' },
  },
  plans: {
    product: { kind: 'text' },
    status: { kind: 'choice', values: ['active', 'archived'] },
  },
}

/**
 * A form in which two values of a kind are equal exactly if they mean the same; undefined for invalid
 * values.
 */
function toKey(kind: Filter['kind'], value: unknown): string | undefined {
  if (value === null || value === undefined) return undefined
  if (kind === 'integer') return /^-?\d+$/.exec(numberText(value) ?? '')?.[0]
  if (kind === 'number') return plainDecimal(numberText(value))
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  if (kind === 'date') return isDate(text) ? text : undefined
  return kind === 'timestamp' ? parseTimestamp(text)?.toString() : text
}

function plainDecimal(text: string | undefined): string | undefined {
  try {
    return new Big(text ?? '').toFixed()
  } catch {
    return undefined
  }
}

const complaints: Partial<Record<Filter['kind'], string>> = {
  integer: 'Enter a number.',
  number: 'Enter a number.',
  date: 'Enter a valid date.',
  timestamp: 'Enter a valid date/time.',
  from: 'Enter a valid date/time.',
  to: 'Enter a valid date/time.',
}

/** Django takes the last value of a repeated parameter. */
export function lastParam(query: URLSearchParams, name: string): string | undefined {
  return query.getAll(name).at(-1)
}

/** Parses a request's filters, or reports errors by parameter. Unknown parameters are silently ignored. */
export function toTerms(options: {
  name: ListName
  world: World
  query: URLSearchParams
  ignored: readonly FaultOf<'ignoreFilters'>[]
}): { terms: Term[]; errors: Record<string, string[]> | undefined } {
  const { name, world, query, ignored } = options
  const ignores = (filter: string) => ignored.some(({ filters: some }) => some?.includes(filter) ?? true)
  const terms: Term[] = []
  const errors: Record<string, string[]> = {}
  for (const [param, filter] of Object.entries(filters[name])) {
    const asked = lastParam(query, param)
    if (asked === undefined || asked === '' || ignores(param)) continue
    if (filter.values !== undefined && !filter.values.includes(asked)) {
      errors[param] = [`Select a valid choice. ${asked} is not one of the available choices.`]
      continue
    }
    const value = param === 'subscriptions' ? customerOf(world, asked) : asked
    const term = toTerm({ param, filter, value, collection: world[name] })
    if (term === undefined) errors[param] = [complaints[filter.kind] ?? 'Enter a valid value.']
    else terms.push(term)
  }
  return { terms, errors: Object.keys(errors).length === 0 ? undefined : errors }
}

/** The customer of a linked subscription. */
function customerOf(world: World, subscription: string): string {
  const record = world.subscriptions.get(subscription)
  return record === undefined ? '' : String(world.subscriptions.fields(record).customer)
}

function toTerm(options: {
  param: string
  filter: Filter
  value: string
  collection: Collection
}): Term | undefined {
  const { param, filter, value, collection } = options
  const key = `${param}=${value}`
  const fieldsOf = (record: StoredRecord) => collection.fields(record)
  if (filter.kind === 'contains') {
    const part = value.toLowerCase()
    const textOf = (stored: unknown) => (typeof stored === 'string' ? stored.toLowerCase() : '')
    return { key, holds: (record) => textOf(fieldsOf(record)[param]).includes(part) }
  }
  if (filter.kind === 'from' || filter.kind === 'to') {
    const bound = parseTimestamp(value)
    if (bound === undefined) return undefined
    if (filter.kind === 'from') return { key, holds: (record) => record.created >= bound }
    return { key, holds: (record) => record.created <= bound }
  }
  const wanted = toKey(filter.kind, value)
  if (wanted === undefined) return undefined
  const valuesOf = filter.valuesOf ?? ((fields: Fields) => [fields[param]])
  const holds = (record: StoredRecord) =>
    valuesOf(fieldsOf(record)).some((stored) => toKey(filter.kind, stored) === wanted)
  return { key, holds }
}
