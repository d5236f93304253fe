import type { z } from 'zod'
import { documentResources, type DocumentName } from './documents.ts'
import { listResources } from './lists.ts'
import type { ListName } from './resource.ts'

/** What can be published: the lists, and the documents that are fetched by id. */
export type ResourceName = ListName | DocumentName

export const allResources: Readonly<Record<ResourceName, { name: ResourceName; schema: z.ZodObject }>> = {
  ...listResources,
  ...documentResources,
}
