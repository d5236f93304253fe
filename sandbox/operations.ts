/** The operations of the service (interface section 4): the table, and what each of them does. */
import { type Answer, json, notFound } from './answer.ts'
import { multiply, numberText } from './data/values.ts'
import { toTimestamp } from './data/times.ts'
import { listPage } from './lists.ts'
import { type ListName, listNames } from './options.ts'
import type { Call } from './service.ts'
import type { Collection, Fields, StoredRecord } from './store.ts'
import {
  addonRules,
  contactRules,
  productRules,
  resumeRules,
  retentionRules,
  type Rules,
  subscriptionRules,
  validate,
} from './validation.ts'

export interface Route {
  /** Method and path in the interface's notation: `PATCH /contacts/{id}/`. */
  operation: string
  answer: (call: Call) => Answer
  /** The list that the operation reads. */
  list?: ListName
}

/** The thirteen operations of interface section 4. */
const operations: Readonly<Record<string, Omit<Route, 'operation'>>> = {
  ...Object.fromEntries(
    listNames.map((list) => [`GET /${list}/`, { answer: (call: Call) => listPage(list, call), list }]),
  ),
  'DELETE /orders/{id}/': { answer: deleteOrder },
  'POST /subscriptions/{id}/resume/': { answer: resumeSubscription },
  'PATCH /subscriptions/{id}/': { answer: updateSubscription },
  'POST /retentions/': { answer: createRetention },
  'POST /products/': { answer: createProduct },
  'POST /addons/': { answer: createAddon },
  'PATCH /contacts/{id}/': { answer: updateContact },
  'GET /creditnotes/{id}/': { answer: (call) => getDocument('creditnotes', call) },
  'GET /cancellations/{id}/': { answer: (call) => getDocument('cancellations', call) },
}

const paths = new Set(Object.keys(operations).map((operation) => operation.split(' ')[1]))
const shape = /^\/([a-z]+)\/(?:([^/]+)\/)?(?:(resume)\/)?$/

/** Finds the operation of a request; without `route`, whether its path exists for another method. */
export function findRoute(
  method: string,
  path: string,
): { route: Route | undefined; operation: string; id: string; known: boolean } {
  const [, resource, id, verb] = shape.exec(path) ?? []
  const template =
    resource === undefined ? path : `/${resource}/${id === undefined ? '' : '{id}/'}${verb ? 'resume/' : ''}`
  const operation = `${method} ${template}`
  const found = operations[operation]
  const route = found && { operation, ...found }
  return { route, operation, id: decode(id ?? ''), known: paths.has(template) }
}

function decode(id: string): string {
  try {
    return decodeURIComponent(id)
  } catch {
    return id
  }
}

/** Returns the record as stored now. */
function storedAnswer(status: number, collection: Collection, record: StoredRecord): Answer {
  return { status, body: collection.json(record) }
}

/** The values to store of those sent: all of them, unless a fault changes some. */
function asStored(call: Call, values: Fields): Fields {
  return Object.assign({}, values, ...call.struck.all('storeOtherwise').map(({ fields }) => fields))
}

function createProduct(call: Call): Answer {
  const returned = { plans: [], test_mode: call.mode === 'test' }
  return create({ call, name: 'products', rules: productRules, returned })
}

function createAddon(call: Call): Answer {
  return create({ call, name: 'addons', rules: addonRules, returned: {} })
}

function create(options: {
  call: Call
  name: 'products' | 'addons'
  rules: Rules
  returned: Record<string, unknown>
}): Answer {
  const { call, name, rules, returned } = options
  const { values, errors } = validate({ rules, body: call.body, partial: false })
  if (errors !== undefined) return json(400, errors)
  const archived = values.status === 'archived' ? toTimestamp(call.service.clock.now()) : null
  const fields = { ...asStored(call, values), archived, ...returned }
  const collection = call.world[name]
  return storedAnswer(201, collection, collection.create({ cause: call.cause, fields }))
}

/** Updates a contact, which is stored in its customer; the contact's id names it. */
function updateContact(call: Call): Answer {
  const { customers } = call.world
  const record = customers.get(`cus_${call.id.split('_')[1] ?? ''}`)
  const contacts = record === undefined ? [] : contactsOf(call, record)
  const place = contacts.findIndex(({ id }) => id === call.id)
  if (record === undefined || place < 0) return notFound()
  const { values, errors } = validate({ rules: contactRules, body: call.body, partial: true })
  if (errors !== undefined) return json(400, errors)
  const updated = toTimestamp(call.service.clock.now())
  const contact = { ...contacts[place], ...asStored(call, values), updated }
  const cause = { ...call.cause, part: { resource: 'contacts', id: call.id } } as const
  const changed = contacts.with(place, contact)
  // The customer's own `updated` does not change: the row belongs to another table.
  customers.update({ id: record.id, fields: { contacts: changed }, cause, touch: false })
  return json(200, contact)
}

function contactsOf(call: Call, record: StoredRecord): Fields[] {
  const { contacts } = call.world.customers.fields(record)
  return Array.isArray(contacts) ? contacts : []
}

function getDocument(name: 'creditnotes' | 'cancellations', call: Call): Answer {
  const record = call.world[name].get(call.id)
  return record === undefined ? notFound() : storedAnswer(200, call.world[name], record)
}

function deleteOrder(call: Call): Answer {
  return call.world.orders.remove(call.id, call.cause) === undefined ? notFound() : { status: 204 }
}

/** Creates a draft. Duplicates are accepted: the service has no idempotency. */
function createRetention(call: Call): Answer {
  const { world, body, cause, struck } = call
  const { values, errors } = validate({ rules: retentionRules, body, partial: false })
  if (errors !== undefined) return json(400, errors)
  const others = struck.all('otherClient')
  const another = (when: 'before' | 'after') => {
    for (const other of others) {
      if ((other.when ?? 'before') !== when) continue
      const { supplier, document, number, date } = values
      const fields = { supplier, document, number, date, lines: [], ...other.fields }
      storeRetention({ call, values: fields, cause: { by: 'other client' } })
    }
  }
  another('before')
  const record = storeRetention({ call, values: asStored(call, values), cause })
  another('after')
  return storedAnswer(201, world.retentions, record)
}

function storeRetention(options: { call: Call; values: Fields; cause: Call['cause'] }): StoredRecord {
  const { call, values, cause } = options
  const { retentions } = call.world
  const id = Number(retentions.nextId())
  const lines = Array.isArray(values.lines) ? values.lines : []
  const fields = {
    ...values,
    lines: lines.map((line: Fields, place) => ({ id: id * 10 + place, ...line, total: lineTotal(line) })),
    status: 'draft',
    biller_status: 'pending',
    tax_agency: {},
    local_file: null,
    imported: false,
    test_mode: call.mode === 'test',
  }
  return retentions.create({ cause, fields })
}

function lineTotal(line: Fields): unknown {
  const [amount, quantity] = [numberText(line.amount), numberText(line.quantity) ?? '1']
  const product = amount === undefined ? undefined : multiply(amount, quantity)
  return product === undefined ? null : JSON.rawJSON(product)
}

/** Updates a subscription; absent fields stay unchanged. */
function updateSubscription(call: Call): Answer {
  const { subscriptions } = call.world
  const record = subscriptions.get(call.id)
  if (record === undefined) return notFound()
  const { values, errors } = validate({ rules: subscriptionRules, body: call.body, partial: true })
  if (errors !== undefined) return json(400, errors)
  const merged = { ...subscriptions.fields(record), ...values }
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
  const serial = call.service.audit.mark() + 1
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
function resumeSubscription(call: Call): Answer {
  const { service, world, struck } = call
  const { subscriptions } = world
  const record = subscriptions.get(call.id)
  if (record === undefined) return notFound()
  const { values, errors } = validate({ rules: resumeRules, body: call.body, partial: true })
  if (errors !== undefined) return json(400, errors)
  const before = subscriptions.fields(record)
  if (before.status !== 'needs_attention')
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
