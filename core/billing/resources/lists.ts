import type { z } from 'zod'
import type { Billing, ReadOptions } from '../client.ts'
import type { FetchedDocument } from '../reply.ts'
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

/** A document (operations 12 and 13): the service returns it only by id, so ids come from elsewhere. */
interface DocumentResource<Name extends string = string> {
  name: Name
  /** One record; nothing in it is required but an id. */
  schema: z.ZodObject
  get(billing: Billing, id: string, options?: ReadOptions): Promise<FetchedDocument>
}

const creditnotes: DocumentResource<'creditnotes'> = {
  name: 'creditnotes',
  schema: creditNote,
  get: (billing, id, options) => billing.getCreditNote(id, options),
}

const cancellations: DocumentResource<'cancellations'> = {
  name: 'cancellations',
  schema: cancellation,
  get: (billing, id, options) => billing.getCancellation(id, options),
}

/** The table of documents; every list of their names comes from it. */
const documents = { creditnotes, cancellations }

export type DocumentName = keyof typeof documents

export const documentResources: Readonly<Record<DocumentName, DocumentResource<DocumentName>>> = documents

export const documentNames: readonly DocumentName[] = Object.values(documents).map(({ name }) => name)

export const isDocumentName = (name: string): name is DocumentName => Object.hasOwn(documents, name)

/** What can be published: the lists, and the documents that are fetched by id. */
export type ResourceName = ListName | DocumentName

export const allResources: Readonly<Record<ResourceName, { name: ResourceName; schema: z.ZodObject }>> = {
  ...listResources,
  ...documentResources,
}
