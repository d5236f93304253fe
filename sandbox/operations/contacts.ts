import { type Answer, json, notFound } from '../answer.ts'
import { toTimestamp } from '../data/times.ts'
import type { Call } from '../service.ts'
import type { Fields, StoredRecord } from '../store/stored-record.ts'
import { validate } from '../validation.ts'
import { contactRules } from '../write-rules.ts'
import { asStored } from './stored-answer.ts'

/** Updates a contact, which is stored in its customer; the contact's id names it. */
export function updateContact(call: Call): Answer {
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
  const { contacts } = call.world.customers.source.fields(record)
  return Array.isArray(contacts) ? contacts : []
}
