import type { z } from 'zod'
import { documentResources, type DocumentName } from './documents.ts'
import { listResources, type ListName } from './lists.ts'

/** What can be published: the lists, and the documents that are fetched by id. */
export type ResourceName = ListName | DocumentName

export const allResources: Readonly<Record<ResourceName, { name: ResourceName; schema: z.ZodObject }>> = {
  ...listResources,
  ...documentResources,
}
