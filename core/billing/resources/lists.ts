import { customers } from './customers.ts'
import { plans } from './plans.ts'
import type { ListName, ListResource } from './resource.ts'
import { retentions } from './retentions.ts'
import { subscriptions } from './subscriptions.ts'

/** The four lists of the interface, by name. */
export const listResources: Readonly<Record<ListName, ListResource>> = {
  customers,
  subscriptions,
  plans,
  retentions,
}
