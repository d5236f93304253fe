import { z } from 'zod'
import { boolean, decimal, freeText, integer, json, list, object, text, timestamp } from './fields.ts'
import { equals, type ListResource } from './filters.ts'

/** Interface section 2.3. */
export const contact = z.looseObject({
  id: text({ write: 'readOnly' }),
  name: freeText({ write: 'required', maxLength: 64 }),
  email: text({ write: 'required', format: 'email' }),
  customer: text({ write: 'optional', nullable: true, note: 'customer the contact belongs to' }),
  orgunit: text({
    write: 'optional',
    nullable: true,
    note: 'organisation unit, a sub-grouping inside a customer',
  }),
  phone: text({ write: 'optional', nullable: true, maxLength: 12 }),
  invoicing: boolean({
    write: 'optional',
    default: 'true',
    note: 'whether the contact receives invoice emails',
  }),
  collections: boolean({
    write: 'optional',
    default: 'true',
    note: 'whether the contact receives collection reminders',
  }),
  created: timestamp({ write: 'readOnly' }),
  updated: timestamp({ write: 'readOnly' }),
})

const country = z.looseObject({
  id: text(),
  name: text(),
  code: text({ note: 'telephone prefix' }),
  has_regulation: boolean(),
  currencies: json({ note: 'array of strings' }),
})

const state = z.looseObject({
  id: integer(),
  name: text(),
  country: text({ note: 'country id' }),
})

const aggregations = z.looseObject({
  sales: decimal(),
  sales_current_period: decimal(),
  balance: decimal(),
})

/** Interface section 2.2. Which fields are required or bounded there: not shown. */
const customer = z.looseObject({
  id: text(),
  name: text(),
  address: text(),
  country: object(country),
  state: object(state),
  currency: text(),
  email: text({ format: 'email' }),
  phone: text(),
  website: text(),
  zip_code: text(),
  manager: text(),
  reference: text(),
  tax_id: text(),
  tax_settings: json(),
  metadata: json(),
  send_invoices: boolean(),
  send_collections: boolean(),
  send_vouchers: boolean(),
  status: text({ note: 'such as `active`' }),
  contacts: list(contact),
  sources: json({ note: 'array of payment source ids' }),
  aggregations: object(aggregations, {
    note: 'computed by the service; may be as old as the last full read',
  }),
  test_mode: boolean(),
  created: timestamp(),
  updated: timestamp(),
})

export const customers: ListResource<'customers'> = {
  name: 'customers',
  schema: customer,
  filters: {
    country: { kind: 'uncheckable' },
    email: { kind: 'contains', field: 'email' },
    name: { kind: 'contains', field: 'name' },
    tax_id: { kind: 'contains', field: 'tax_id' },
    ...equals(customer, ['created']),
    created__gte: { kind: 'from', field: 'created' },
    created__lte: { kind: 'to', field: 'created' },
    subscriptions: { kind: 'uncheckable' },
    sources: { kind: 'uncheckable' },
  },
  unmoved: { fields: ['contacts', 'aggregations'], byKinds: ['update-contact'] },
}
