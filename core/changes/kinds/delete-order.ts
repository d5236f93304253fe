import type { ChangeKind } from '../change-kind.ts'
import { targetOf } from '../target.ts'

/** What is deleted stays deleted: sending it again does no harm, and a 404 then says that the first did it. */
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
  goneIsDone: true,
  traitsOf: () => ({ signature: '', lines: 0, amount: '' }),
}
