import { z } from 'zod'
import type { FieldMeta } from '../billing/resources/fields.ts'

/** The fields of a schema with their builders' metadata, in the schema's order. */
export function fieldsOf(schema: z.ZodObject): [key: string, meta: FieldMeta][] {
  return Object.entries(schema.shape).map(([key, field]) => [key, metaOf(key, field)])
}

function metaOf(key: string, field: unknown): FieldMeta {
  const meta = field instanceof z.ZodType ? field.meta() : undefined
  if (meta === undefined || !isFieldMeta(meta))
    throw new TypeError(`The field ${key} of a resource was not made by the field builders: it has no kind.`)
  return meta
}

const isFieldMeta = (meta: object): meta is FieldMeta => 'kind' in meta && typeof meta.kind === 'string'
