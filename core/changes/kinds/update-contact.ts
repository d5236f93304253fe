import { contact } from '../../billing/resources/customers.ts'
import type { ChangeKind } from '../change-kind.ts'
import { targetOf } from '../target.ts'

/** All fields of a contact are scalar, so that sending an update twice is the same as once. */
export const updateContact: ChangeKind = {
  name: 'update-contact',
  keyOf: (body) => targetOf(body).id,
  repeats: 'otherBody',
  answered: 'updated',
  stores: contact,
  send: ({ billing, body, options }) => {
    const { id, fields } = targetOf(body)
    return billing.updateContact(id, fields, options)
  },
  whenUnknown: () => 'sendAgain',
  traitsOf: (body) => ({ signature: Object.keys(body).toSorted().join(' '), lines: 0, amount: '' }),
}
