import { z } from 'zod'
import { type Kind, fieldsOf, type FieldMeta } from '../billing/resources/fields.ts'

export type { Kind }

/** What tables are built from: the part of a service resource that describes its records. */
export interface TableSource {
  name: string
  schema: z.ZodObject
}

/** The last column of each table: values that the others could not hold, as JSON. */
export const extraColumn = '_extra'

/** One column. `source` is the path of its value in the record (`customers.country.id`). */
const columnSchema = z.object({
  name: z.string(),
  kind: z.enum(['text', 'integer', 'decimal', 'boolean', 'date', 'timestamp', 'json'] satisfies Kind[]),
  source: z.string(),
  note: z.string().exactOptional(),
})
export type Column = z.infer<typeof columnSchema>

/**
 * One table of a resource, as a manifest holds it.
 *
 * `key` identifies its rows. `key[0]` always holds the id of the row's record: `id` in a main table,
 * `<record>_id` in a child. A child's key is its parent's key, renamed, and `position` (from 1). Only the
 * main table's key is guaranteed to be the service's own; a child's own `id`, if it has one, is an ordinary
 * column.
 */
export const tableSchema = z.object({
  name: z.string(),
  resource: z.string(),
  /** The table that holds the parents of these rows; absent for a main table. */
  parent: z.string().exactOptional(),
  key: z.array(z.string()),
  /** The key first, `_extra` last. */
  columns: z.array(columnSchema),
})
export type Table = z.infer<typeof tableSchema>

/**
 * The main table of a resource, followed by a child table for each list of objects in its schema: each table
 * before its children.
 */
export function tablesOf({ name, schema }: TableSource): Table[] {
  const id = fieldsOf(schema).find(([key]) => key === 'id')?.[1]
  if (id === undefined || id.kind === 'object' || id.kind === 'list')
    throw new TypeError(`The resource ${name} has no field id to tell its records apart.`)
  const tables: Table[] = []
  const key = [toColumn('id', `${name}.id`, id)]
  addTable(tables, { table: name, resource: name, path: name, key, schema })
  return tables
}

interface TableSetup {
  table: string
  resource: string
  parent?: string
  /** The path of its objects in a record: `customers.contacts`. */
  path: string
  key: Column[]
  schema: z.ZodObject
}

function addTable(tables: Table[], setup: TableSetup): void {
  const { table, resource, parent, path } = setup
  const key = setup.key.map(({ name }) => name)
  const columns = [...setup.key]
  tables.push({ name: table, resource, ...(parent !== undefined && { parent }), key, columns })

  const addFields = (schema: z.ZodObject, at: string, prefix: string) => {
    for (const [field, meta] of fieldsOf(schema)) {
      const name = `${prefix}${field}`
      const source = `${at}.${field}`
      if (meta.kind === 'object') addFields(meta.fields, source, `${name}_`)
      else if (meta.kind === 'list') addTable(tables, childOf(setup, { name, source, schema: meta.fields }))
      else if (!isRecordId(field, at, resource)) columns.push(toColumn(name, source, meta))
    }
  }
  addFields(setup.schema, path, '')
  const note = 'unknown fields, and values that their columns could not hold'
  columns.push({ name: extraColumn, kind: 'json', source: path, note })
  const twice = columns.find(({ name }, at) => columns.findIndex((column) => column.name === name) !== at)
  if (twice !== undefined) throw new TypeError(`The table ${table} would have two columns ${twice.name}.`)
}

/** Whether a field at a path is the records' own id: the key, which stands first. */
export const isRecordId = (field: string, path: string, resource: string) =>
  field === 'id' && path === resource

/** The child table of a list: `customers` has its `contacts` in `customer_contacts`, by `customer_id` and `position`. */
function childOf(
  parent: TableSetup,
  { name, source, schema }: { name: string; source: string; schema: z.ZodObject },
): TableSetup {
  const one = parent.table.replace(/s$/, '')
  const above = parent.key.map((column) => ({ ...column, name: `${one}_${column.name}` }))
  // A grandchild names its record as its parent does: `subscription_id`.
  if (parent.parent !== undefined) above.splice(0, parent.key.length - 1, ...parent.key.slice(0, -1))
  const position: Column = { name: 'position', kind: 'integer', source, note: 'place in the list, from 1' }
  return {
    table: `${one}_${name}`,
    resource: parent.resource,
    parent: parent.table,
    path: source,
    key: [...above, position],
    schema,
  }
}

function toColumn(name: string, source: string, { kind, note }: FieldMeta): Column {
  if (kind === 'object' || kind === 'list') throw new TypeError(`${source} is not one value.`)
  return { name, kind, source, ...(note !== undefined && { note }) }
}

/** The path of a table's objects in a record: of its main table the resource's name. */
export const pathOf = ({ parent, resource, key, columns }: Table): string =>
  parent === undefined ? resource : columns[key.length - 1]!.source
