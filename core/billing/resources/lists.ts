import { customers } from './customers.ts'
import { plans } from './plans.ts'
import type { ListResource } from './resource.ts'
import { retentions } from './retentions.ts'
import { subscriptions } from './subscriptions.ts'

/** The lists (operations 4, 6, 10 and 11 of the interface). All lists of their names derive from this table. */
const lists = { customers, subscriptions, plans, retentions }

export type ListName = keyof typeof lists

export const listResources: Readonly<Record<ListName, ListResource<ListName>>> = lists

export const listNames: readonly ListName[] = Object.values(lists).map(({ name }) => name)
