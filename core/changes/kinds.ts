import { type ChangeKind, type ChangeKindName } from './change-kind.ts'
import { createRetention } from './kinds/create-retention.ts'
import { resumeSubscription } from './kinds/resume-subscription.ts'
import { createAddon, createProduct, deleteOrder, updateContact, updateSubscription } from './kinds/simple.ts'

/** All change kinds. A new one is described in kinds/ and takes one more line here. */
export const changeKinds: Readonly<Record<ChangeKindName, ChangeKind>> = {
  'create-retention': createRetention,
  'create-addon': createAddon,
  'create-product': createProduct,
  'update-contact': updateContact,
  'update-subscription': updateSubscription,
  'delete-order': deleteOrder,
  'resume-subscription': resumeSubscription,
}
