import { addon } from '../../billing/resources/catalog.ts'
import type { ChangeKind } from '../change-kind.ts'
import { textOf } from '../compare-fields.ts'
import { rowHash } from '../row-hash.ts'

/** The API cannot list or get addons, so after a lost reply the change is parked for a person. */
export const createAddon: ChangeKind = {
  name: 'create-addon',
  keyOf: rowHash(addon),
  repeats: 'never',
  answered: 'created',
  stores: addon,
  send: ({ billing, body, options }) => billing.createAddon(body, options),
  whenUnknown: () => 'park',
  traitsOf: (body) => ({
    signature: `${textOf(body['apply_scheme'])} ${textOf(body['currency'])}`,
    lines: 0,
    amount: textOf(body['amount']),
  }),
}
