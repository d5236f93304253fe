import type { z } from 'zod'
import type { Billing, ReadOptions, Returned } from '../client.ts'
import { cancellation } from './cancellations.ts'
import { creditNote } from './credit-notes.ts'

/** What the service gives by id only (operations 12 and 13). It has no list of them, so ids come from elsewhere. */
export const documentNames = ['creditnotes', 'cancellations'] as const
export type DocumentName = (typeof documentNames)[number]

export interface DocumentResource {
  name: DocumentName
  /** One record; nothing in it is required but an id. */
  schema: z.ZodObject
  get(billing: Billing, id: string, options?: ReadOptions): Promise<Returned>
}

export const documentResources: Readonly<Record<DocumentName, DocumentResource>> = {
  creditnotes: {
    name: 'creditnotes',
    schema: creditNote,
    get: (billing, id, options) => billing.getCreditNote(id, options),
  },
  cancellations: {
    name: 'cancellations',
    schema: cancellation,
    get: (billing, id, options) => billing.getCancellation(id, options),
  },
}

export const isDocumentName = (name: string): name is DocumentName =>
  (documentNames as readonly string[]).includes(name)
