import type { z } from 'zod'
import { customers } from './customers.ts'
import { plans } from './catalog.ts'
import type { ListResource } from './filters.ts'
import { subscriptions } from './subscriptions.ts'
import { cancellation, creditNote, retentions } from './tax-documents.ts'

/** The lists (operations 4, 6, 10 and 11 of the interface). All lists of their names derive from this table. */
const lists = { customers, subscriptions, plans, retentions }

export type ListName = keyof typeof lists

export const listResources: Readonly<Record<ListName, ListResource<ListName>>> = lists

export const listNames: readonly ListName[] = Object.values(lists).map(({ name }) => name)

/** The documents (operations 12 and 13): the service returns them only by id, so ids come from elsewhere. */
const documents = {
  creditnotes: { name: 'creditnotes', schema: creditNote },
  cancellations: { name: 'cancellations', schema: cancellation },
} as const

export type DocumentName = keyof typeof documents

export const documentResources: Readonly<Record<DocumentName, { name: DocumentName; schema: z.ZodObject }>> =
  documents

export const documentNames: readonly DocumentName[] = Object.values(documents).map(({ name }) => name)

export const isDocumentName = (name: string): name is DocumentName => Object.hasOwn(documents, name)

/** What can be published: the lists, and the documents that are fetched by id. */
export type ResourceName = ListName | DocumentName

export const allResources: Readonly<Record<ResourceName, { name: ResourceName; schema: z.ZodObject }>> = {
  ...listResources,
  ...documentResources,
}
