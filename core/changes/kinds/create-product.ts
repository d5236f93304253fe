import { product } from '../../billing/resources/catalog.ts'
import type { ChangeKind } from '../change-kind.ts'
import { textOf } from '../compare-fields.ts'
import { rowHash } from '../row-hash.ts'

/** The interface has no way to list or get products: one whose reply is lost is left to a person. */
export const createProduct: ChangeKind = {
  name: 'create-product',
  keyOf: rowHash(product),
  repeats: 'never',
  answered: 'created',
  stores: product,
  send: ({ billing, body, options }) => billing.createProduct(body, options),
  whenUnknown: () => 'park',
  traitsOf: (body) => ({ signature: textOf(body['status']), lines: 0, amount: '' }),
}
