import { type ChangeKind, type ChangeKindName } from './change-kind.ts'
import { createAddon } from './kinds/create-addon.ts'
import { createProduct } from './kinds/create-product.ts'
import { createRetention } from './kinds/create-retention.ts'
import { deleteOrder } from './kinds/delete-order.ts'
import { resumeSubscription } from './kinds/resume-subscription.ts'
import { updateContact } from './kinds/update-contact.ts'
import { updateSubscription } from './kinds/update-subscription.ts'

/** All change kinds. A new one takes one more file in kinds/ and one more line here. */
export const changeKinds: Readonly<Record<ChangeKindName, ChangeKind>> = {
  'create-retention': createRetention,
  'create-addon': createAddon,
  'create-product': createProduct,
  'update-contact': updateContact,
  'update-subscription': updateSubscription,
  'delete-order': deleteOrder,
  'resume-subscription': resumeSubscription,
}

export const isChangeKind = (name: string): name is ChangeKindName => Object.hasOwn(changeKinds, name)
