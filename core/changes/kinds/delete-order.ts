import type { ChangeKind } from '../change-kind.ts'
import { targetOf } from '../target.ts'

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
