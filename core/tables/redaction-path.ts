import type { z } from 'zod'
import type { FieldMeta } from '../billing/resources/fields.ts'
import { fieldsOf } from './field-meta.ts'
import { nearestName } from './nearest-name.ts'
import { PrivacyRefusedError } from './private-field.ts'
import { extraColumn } from './encoder/row-plan.ts'
import type { Table, TableSource } from './table.ts'

/** The name belongs to no table: probably a typo, which would let private data through. */
export class UnknownFieldError extends Error {
  override readonly name = 'UnknownFieldError'
  readonly retryable = false
  constructor(field: string, nearest: string | undefined, known: readonly string[]) {
    const hint = nearest === undefined ? `The known names: ${known.join(', ')}.` : `Did you mean ${nearest}?`
    super(`There is no field ${field}. ${hint}`)
  }
}

interface Asked {
  name: string
  action: 'exclude' | 'hash'
  /** The table that the name starts with. */
  table: Table
  tables: readonly Table[]
  resource: TableSource
}

/** The path of keys from a record to the named value: `customer_contacts.email` is contacts, email. */
export function toPlace(asked: Asked): string[] {
  const { table, name } = asked
  const [, first = '', ...rest] = name.split('.')
  const row = keysOf(table.columns.at(-1)!.source)
  if (first === extraColumn) return toExtraPlace(asked, row, rest)
  const column = table.columns.find((column) => column.name === first)
  const place = column === undefined ? [...row, first, ...rest] : [...keysOf(column.source), ...rest]
  if (column !== undefined && table.key.includes(first)) checkKey(asked, place)
  else checkField(asked, place)
  return place
}

const keysOf = (source: string) => source.split('.').slice(1)

function toExtraPlace(asked: Asked, row: readonly string[], rest: readonly string[]): string[] {
  if (rest.length === 0 && asked.action === 'hash')
    throw new PrivacyRefusedError(`${asked.name} holds many fields: hash one of them, or exclude it.`)
  if (rest.length === 0) return [...row, extraColumn]
  const known = asked.table.columns.find((column) => column.source === sourceOf(asked, [...row, rest[0]!]))
  if (known !== undefined)
    throw new PrivacyRefusedError(`${asked.name} is a column: name it ${asked.table.name}.${known.name}.`)
  return [...row, ...rest]
}

const sourceOf = (asked: Asked, keys: readonly string[]) => [asked.resource.name, ...keys].join('.')

function checkKey({ name, action, table }: Asked, place: readonly string[]): void {
  if (action === 'hash' && place.join() === 'id') return
  throw new PrivacyRefusedError(
    `${name} tells the rows of ${table.name} apart and can't be left out or changed alone` +
      ` (--hash ${table.resource}.id hides the id in all its tables).`,
  )
}

function checkField(asked: Asked, place: readonly string[]): void {
  let schema: z.ZodObject | undefined = asked.resource.schema
  for (const [index, key] of place.entries()) {
    const meta: FieldMeta | undefined = schema && fieldsOf(schema).find(([name]) => name === key)?.[1]
    if (meta === undefined) throw unknownField(asked)
    if (meta.kind === 'json') return
    const below: z.ZodObject | undefined =
      meta.kind === 'object' || meta.kind === 'list' ? meta.fields : undefined
    if (below && asked.action === 'hash' && index === place.length - 1)
      throw new PrivacyRefusedError(`${asked.name} holds many fields: hash one of them, or exclude it.`)
    schema = below
  }
}

function unknownField({ name, tables }: Asked): UnknownFieldError {
  const known = tables.flatMap((table) => table.columns.map((column) => `${table.name}.${column.name}`))
  return new UnknownFieldError(name, nearestName(name, known), known)
}
