import type { z } from 'zod'
import type { FieldMeta } from '../../billing/resources/fields.ts'
import { fieldsOf } from '../field-meta.ts'
import type { PrivateField } from '../private-field.ts'
import type { Column, Kind, Table, TableSource } from '../table.ts'

/**
 * How one field of an object maps to columns. `path` is its path in the record, for people:
 * `customers.country.id`.
 */
export type FieldPlan =
  | { shape: 'cell'; key: string; path: string; kind: Kind; rule: PrivateField | undefined }
  | { shape: 'object'; key: string; path: string; object: ObjectPlan }
  | { shape: 'list'; key: string; path: string; row: RowPlan }
  /** Excluded: known, so that it does not count as unknown, but never written. */
  | { shape: 'hidden'; key: string; path: string }

export interface ObjectPlan {
  path: string
  fields: FieldPlan[]
  rule: PrivateField | undefined
}

/** A table and how its rows are built: from the records, or from the objects of a list inside them. */
export interface RowPlan {
  table: Table
  object: ObjectPlan
  /** The tables of nested lists, in the schema's order. */
  children: RowPlan[]
}

/** The last column of each table: values that the others could not hold, as JSON. */
export const extraColumn = '_extra'

/** Plans a resource's schema as a table and its child tables. */
export function toRowPlan(resource: TableSource, rule?: PrivateField): RowPlan {
  const { name, schema } = resource
  const id = fieldsOf(schema).find(([key]) => key === 'id')?.[1]
  if (id === undefined || id.kind === 'object' || id.kind === 'list')
    throw new TypeError(`The resource ${name} has no field id to tell its records apart.`)
  const key = [toColumn({ name: 'id', path: `${name}.id`, meta: id, rule: rule?.below.get('id') })]
  return layRow({ resource: name, table: name, key, path: name, schema, rule })
}

/** A plan's tables in the order of the schema: each before its children. */
export function tablesOf(plan: RowPlan): Table[] {
  return [plan.table, ...plan.children.flatMap(tablesOf)]
}

interface Row {
  resource: string
  table: string
  parent?: string
  key: Column[]
  path: string
  schema: z.ZodObject
  rule: PrivateField | undefined
}

/** A table whose columns are being collected. */
interface Layout extends Row {
  columns: Column[]
  children: RowPlan[]
}

function layRow(row: Row): RowPlan {
  const layout: Layout = { ...row, columns: [...row.key], children: [] }
  const object = layObject(layout, { ...row, prefix: '' })
  const { resource, table, parent, key, columns, children } = layout
  if (row.rule?.below.get(extraColumn)?.action !== 'exclude') columns.push(toExtra(row.path))
  checkNames(table, columns)
  return {
    table: {
      name: table,
      resource,
      ...(parent === undefined ? {} : { parent }),
      key: key.map((column) => column.name),
      columns,
    },
    object,
    children,
  }
}

interface Place {
  path: string
  /** The prefix of the column names: `country_`. */
  prefix: string
  schema: z.ZodObject
  rule: PrivateField | undefined
}

function layObject(layout: Layout, place: Place): ObjectPlan {
  const fields = fieldsOf(place.schema)
    .filter(([key]) => !isRecordId(layout, place, key))
    .map(([key, meta]) => layField(layout, place, key, meta))
  return { path: place.path, fields, rule: place.rule }
}

/** Whether the field is a record's own id: the key of its row, which the encoder writes first. */
const isRecordId = (layout: Layout, place: Place, key: string) =>
  key === 'id' && layout.parent === undefined && place.prefix === ''

function layField(layout: Layout, place: Place, key: string, meta: FieldMeta): FieldPlan {
  const path = `${place.path}.${key}`
  const name = `${place.prefix}${key}`
  const rule = place.rule?.below.get(key)
  if (rule?.action === 'exclude') return { shape: 'hidden', key, path }
  if (meta.kind === 'object') {
    const object = layObject(layout, { path, prefix: `${name}_`, schema: meta.fields, rule })
    return { shape: 'object', key, path, object }
  }
  if (meta.kind === 'list') {
    const row = layRow({ ...childOf(layout, name, path), path, schema: meta.fields, rule })
    layout.children.push(row)
    return { shape: 'list', key, path, row }
  }
  layout.columns.push(toColumn({ name, path, meta, rule }))
  return { shape: 'cell', key, path, kind: meta.kind, rule }
}

/**
 * Plans a child table: `customers` stores `contacts` in `customer_contacts`, with `customer_id` and
 * `position`.
 */
function childOf(
  parent: Layout,
  field: string,
  path: string,
): Pick<Row, 'resource' | 'table' | 'parent' | 'key'> {
  const one = toSingular(parent.table)
  const above = parent.key.map((column) => ({ ...column, name: `${one}_${column.name}` }))
  // A grandchild names its record as its parent does: `subscription_id`.
  if (parent.parent !== undefined) above.splice(0, parent.key.length - 1, ...parent.key.slice(0, -1))
  const position: Column = {
    name: 'position',
    kind: 'integer',
    source: path,
    note: 'place in the list, from 1',
  }
  return {
    resource: parent.resource,
    table: `${one}_${field}`,
    parent: parent.table,
    key: [...above, position],
  }
}

const toSingular = (name: string) => name.replace(/s$/, '')

interface Cell {
  name: string
  path: string
  meta: FieldMeta & { kind: Kind }
  rule: PrivateField | undefined
}

function toColumn({ name, path, meta, rule }: Cell): Column {
  if (rule?.action === 'hash') return { name, kind: 'text', source: path, note: 'keyed hash of the value' }
  return { name, kind: meta.kind, source: path, ...(meta.note === undefined ? {} : { note: meta.note }) }
}

const toExtra = (path: string): Column => ({
  name: extraColumn,
  kind: 'json',
  source: path,
  note: 'unknown fields, and values that their columns could not hold',
})

function checkNames(table: string, columns: readonly Column[]): void {
  const twice = columns.find(
    (column, index) => columns.findIndex(({ name }) => name === column.name) !== index,
  )
  if (twice !== undefined) throw new TypeError(`The table ${table} would have two columns ${twice.name}.`)
}
