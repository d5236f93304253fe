import type { z } from 'zod'
import { fieldOf, type FieldMeta } from '../billing/resources/fields.ts'
import { nearestName } from './nearest-name.ts'
import { keepsExtra, redactSchema, type PrivateField } from './redact.ts'
import { pathOf, tablesOf, extraColumn, type Table, type TableSource } from './table.ts'

/**
 * Which values must not be written as they are. A field is named by its path in the record
 * (`customers.country.id`, `customers.contacts.email`) or by its column (`customers.country_id`,
 * `customer_contacts.email`). A path may continue into a JSON column (`customers.metadata.rut`). A field
 * unknown to the schema is named under `_extra` (`customers._extra.nickname`).
 */
export interface Privacy {
  exclude?: readonly string[]
  hash?: readonly string[]
  /** The secret key for hashes. */
  hashKey?: string
}

/** A known field cannot be treated as requested, or a hash has no key. */
export class PrivacyRefusedError extends Error {
  override readonly name = 'PrivacyRefusedError'
  readonly retryable = false
}

/** The name belongs to no table: probably a typo, which would let private data through. */
export class UnknownFieldError extends Error {
  override readonly name = 'UnknownFieldError'
  readonly retryable = false
  constructor(field: string, known: readonly string[], name = field, meant: readonly string[] = []) {
    const nearest = meant.length > 0 ? meant.join(' or ') : nearestName(name, known)
    const hint = nearest === undefined ? `The known names: ${known.join(', ')}.` : `Did you mean ${nearest}?`
    super(`There is no field ${field}. ${hint}`)
  }
}

/**
 * Checks every name in `exclude` and `hash` against all resources.
 * @throws {UnknownFieldError} with the nearest known name
 * @throws {PrivacyRefusedError} a field cannot be treated that way, or a hash has no key
 */
export function checkPrivacy(resources: readonly TableSource[], privacy: Privacy): void {
  const tables = resources.flatMap((resource) => tablesOf(resource))
  const known = tables.map((table) => table.name)
  for (const name of [...(privacy.exclude ?? []), ...(privacy.hash ?? [])]) {
    if (known.includes(firstPart(name))) continue
    // A column without its table.
    const having = tables.filter(({ columns }) => columns.some((column) => column.name === name))
    const meant = having.map((table) => `${table.name}.${name}`)
    throw new UnknownFieldError(name, known, firstPart(name), meant)
  }
  for (const resource of resources) toPrivateFields(resource, privacy)
}

/** The tables of a resource, without what is excluded. */
export function toTables(resource: TableSource, privacy: Privacy = {}): Table[] {
  const rule = toPrivateFields(resource, privacy)
  const tables = tablesOf({ name: resource.name, schema: redactSchema(resource.schema, rule) })
  return tables.map((table) => {
    const ofTable = keysOf(pathOf(table)).reduce((above, key) => above?.below.get(key), rule)
    return keepsExtra(ofTable) ? table : { ...table, columns: table.columns.slice(0, -1) }
  })
}

/**
 * The private fields of a resource, by path; undefined if there are none. Ignores names of other resources.
 * @throws {PrivacyRefusedError} a field cannot be treated as requested
 */
export function toPrivateFields(resource: TableSource, privacy: Privacy): PrivateField | undefined {
  const { exclude = [], hash = [], hashKey } = privacy
  if (hash.length > 0 && !hashKey)
    throw new PrivacyRefusedError(
      'Hashing needs a secret key: set CONNECTOR_HASH_KEY where the worker runs, or exclude the field.',
    )
  const root: PrivateField = { below: new Map() }
  for (const action of ['exclude', 'hash'] as const)
    for (const { name, path } of pathsOf(resource, { names: { exclude, hash }[action], action })) {
      const field = path.reduce(below, root)
      if (field.action !== undefined && field.action !== action)
        throw new PrivacyRefusedError(`${name} is both excluded and hashed: choose one.`)
      field.action = action
    }
  return root.below.size === 0 ? undefined : root
}

/**
 * The fields of a resource among the names in `exclude` or `hash`, each once by its path (`customers.contacts.email`), in
 * order: two lists of names that mean the same are equal. Ignores names of other resources, and fields of a field that is
 * named itself.
 */
export function toFields(resource: TableSource, of: { names: readonly string[]; action: Action }): string[] {
  const paths = pathsOf(resource, of).map(({ path }) => [resource.name, ...path].join('.'))
  const isBelow = (path: string) => paths.some((other) => path.startsWith(`${other}.`))
  return [...new Set(paths)].filter((path) => !isBelow(path)).toSorted()
}

function below(field: PrivateField, key: string): PrivateField {
  const next = field.below.get(key) ?? { below: new Map<string, PrivateField>() }
  field.below.set(key, next)
  return next
}

type Action = 'exclude' | 'hash'

/** The paths of the names that are fields of this resource: `customer_contacts.email` is contacts, email. */
function pathsOf(
  resource: TableSource,
  { names, action }: { names: readonly string[]; action: Action },
): { name: string; path: string[] }[] {
  const tables = tablesOf(resource)
  return names.flatMap((name) => {
    const table = tables.find((table) => table.name === firstPart(name))
    return table === undefined ? [] : [{ name, path: toPath({ name, action, resource, table, tables }) }]
  })
}

const firstPart = (name: string) => name.split('.', 1)[0]!

/** The names in `exclude` or `hash` that are of this resource, as they were given. */
export const namesOf = (resource: TableSource, names: readonly string[]): string[] => {
  const tables = tablesOf(resource)
  return names.filter((name) => tables.some((table) => table.name === firstPart(name)))
}

const keysOf = (path: string) => path.split('.').slice(1)

/** A name in `exclude` or `hash`, and what it is looked up in. */
interface Named {
  name: string
  action: Action
  resource: TableSource
  /** The table that the name starts with. */
  table: Table
  tables: readonly Table[]
}

function toPath(named: Named): string[] {
  const { name, table } = named
  const [, first = '', ...rest] = name.split('.')
  const row = keysOf(pathOf(table))
  if (first === extraColumn) return toExtraPath(named, row, rest)
  const column = table.columns.find((column) => column.name === first)
  const path = column === undefined ? [...row, first, ...rest] : [...keysOf(column.source), ...rest]
  if (column !== undefined && table.key.includes(first)) checkKey(named, path)
  else checkField(named, path)
  return path
}

function toExtraPath(
  { name, action, resource, table, tables }: Named,
  row: string[],
  rest: string[],
): string[] {
  if (rest.length === 0 && action === 'hash') throw holdsMany(name)
  if (rest.length === 0) return [...row, extraColumn]
  const path = [resource.name, ...row, rest[0]!].join('.')
  const known = tables
    .flatMap(({ name, columns }) => columns.map((column) => ({ ...column, name: `${name}.${column.name}` })))
    .find(({ source }) => source === path || source.startsWith(`${path}.`))
  if (known !== undefined)
    throw new PrivacyRefusedError(
      known.source === path && known.name.startsWith(`${table.name}.`)
        ? `${name} is a column: name it ${known.name}.`
        : `${name} is a known field: name it ${path}.`,
    )
  return [...row, ...rest]
}

const holdsMany = (name: string) =>
  new PrivacyRefusedError(`${name} holds many fields: hash one of them, or exclude it.`)

function checkKey({ name, action, table }: Named, path: readonly string[]): void {
  if (action === 'hash' && path.join() === 'id') return
  throw new PrivacyRefusedError(
    `${name} tells the rows of ${table.name} apart and can't be left out or changed alone` +
      ` (--hash ${table.resource}.id changes the id in all its tables).`,
  )
}

function checkField({ name, action, resource, tables }: Named, path: readonly string[]): void {
  let schema: z.ZodObject | undefined = resource.schema
  for (const [index, key] of path.entries()) {
    const meta: FieldMeta | undefined = schema && fieldOf(schema, key)
    if (meta === undefined) {
      const known = tables.flatMap(({ name, columns }) => columns.map((column) => `${name}.${column.name}`))
      throw new UnknownFieldError(name, known)
    }
    if (meta.kind === 'json') return
    schema = meta.kind === 'object' || meta.kind === 'list' ? meta.fields : undefined
    if (schema && action === 'hash' && index === path.length - 1) throw holdsMany(name)
  }
}
