import { createHash } from 'node:crypto'
import type { z } from 'zod'
import type { Body } from '../../billing/client.ts'
import { addon, product } from '../../billing/resources/catalog.ts'
import { contact } from '../../billing/resources/customers.ts'
import { fieldOf, type FieldMeta } from '../../billing/resources/fields.ts'
import { subscription } from '../../billing/resources/subscriptions.ts'
import { asksForOther, targetOf } from '../body.ts'
import type { ChangeKind } from '../change-kind.ts'
import { canonicalDecimal, textOf } from '../compare-fields.ts'

/** The kinds that cannot be looked up: a lost reply is left to a person, or the request is repeated where that does no harm. */

/**
 * The key of a record that only its contents identify: the same for every spelling of the same record. Saving a
 * spreadsheet again may turn `10.00` into `10` and `é` into `e` and an accent, and an empty cell means the default.
 * Once released, changing this requires a migration of the ledger.
 */
const rowHash =
  (schema: z.ZodObject) =>
  (body: Body): string => {
    const fields = Object.entries(body).flatMap(([name, value]) => {
      const text = canonical(fieldOf(schema, name), value)
      return text === undefined ? [] : [[name, text] as const]
    })
    const sorted = JSON.stringify(fields.toSorted(([a], [b]) => (a < b ? -1 : 1)))
    return createHash('sha256').update(sorted).digest('hex').slice(0, 32)
  }

/** Undefined for a value that means the same as leaving the field out. */
function canonical(meta: FieldMeta | undefined, value: unknown): string | undefined {
  if (value === null || value === undefined) return undefined
  const text = textOf(value).normalize('NFC')
  if (text === meta?.default) return undefined
  return meta?.kind === 'decimal' || meta?.kind === 'integer' ? canonicalDecimal(text) : text
}

/** Records that the interface neither lists nor returns by id: one whose reply is lost is left to a person. */
const creates = (
  own: Pick<ChangeKind, 'name' | 'send' | 'traitsOf'> & { stores: z.ZodObject },
): ChangeKind => ({
  ...own,
  keyOf: rowHash(own.stores),
  repeats: 'never',
  answered: 'created',
  whenUnknown: () => 'park',
})

export const createAddon = creates({
  name: 'create-addon',
  stores: addon,
  send: ({ billing, body, options }) => billing.createAddon(body, options),
  traitsOf: (body) => ({
    signature: `${textOf(body['apply_scheme'])} ${textOf(body['currency'])}`,
    lines: 0,
    amount: textOf(body['amount']),
  }),
})

export const createProduct = creates({
  name: 'create-product',
  stores: product,
  send: ({ billing, body, options }) => billing.createProduct(body, options),
  traitsOf: (body) => ({ signature: textOf(body['status']), lines: 0, amount: '' }),
})

const updates = (own: Pick<ChangeKind, 'name' | 'stores' | 'send' | 'whenUnknown'>): ChangeKind => ({
  ...own,
  keyOf: (body) => targetOf(body).id,
  repeats: asksForOther,
  answered: 'updated',
  traitsOf: (body) => ({
    signature: Object.keys(body).toSorted().join(' '),
    lines: Array.isArray(body['lines']) ? body['lines'].length : 0,
    amount: '',
  }),
})

/** All fields of a contact are scalar, so that sending an update twice is the same as once. */
export const updateContact = updates({
  name: 'update-contact',
  stores: contact,
  send: ({ billing, body, options }) => {
    const { id, fields } = targetOf(body)
    return billing.updateContact(id, fields, options)
  },
  whenUnknown: () => 'sendAgain',
})

/**
 * The documentation does not say whether the service adds to these or replaces them, and a coupon may be redeemed each
 * time: an update of one of them is not repeated without a person.
 */
const notRepeatable = ['lines', 'addons', 'references', 'coupon'] as const

export const updateSubscription = updates({
  name: 'update-subscription',
  stores: subscription,
  send: ({ billing, body, options }) => {
    const { id, fields } = targetOf(body)
    return billing.updateSubscription(id, fields, options)
  },
  whenUnknown: (body) => (notRepeatable.some((field) => field in body) ? 'park' : 'sendAgain'),
})

/** Deleting twice does no harm, and a 404 for the second request shows that the first one succeeded. */
export const deleteOrder: ChangeKind = {
  name: 'delete-order',
  keyOf: (body) => targetOf(body).id,
  repeats: 'never',
  answered: 'deleted',
  send: async ({ billing, body, options }) => {
    await billing.deleteOrder(targetOf(body).id, options)
    return undefined
  },
  whenUnknown: () => 'sendAgain',
  notFoundIsDone: true,
  traitsOf: () => ({ signature: '', lines: 0, amount: '' }),
}
