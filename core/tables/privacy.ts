import { toPlace, UnknownFieldError } from './redaction-path.ts'
import { nearestName } from './nearest-name.ts'
import { PrivacyRefusedError, type PrivateField } from './private-field.ts'
import { tablesOf, toRowPlan } from './encoder/row-plan.ts'
import type { TableSource } from './table.ts'

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

/**
 * Checks every name in `exclude` and `hash` against all resources.
 * @throws {UnknownFieldError} with the nearest known name
 * @throws {PrivacyRefusedError} a field cannot be treated that way, or a hash has no key
 */
export function checkPrivacy(resources: readonly TableSource[], privacy: Privacy): void {
  const tables = resources.flatMap((resource) => tablesOf(toRowPlan(resource)).map((table) => table.name))
  for (const name of [...(privacy.exclude ?? []), ...(privacy.hash ?? [])]) {
    const table = firstPart(name)
    if (!tables.includes(table)) throw new UnknownFieldError(name, nearestName(table, tables), tables)
  }
  for (const resource of resources) toPrivateFields(resource, privacy)
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
  const tables = tablesOf(toRowPlan(resource))
  const root: PrivateField = { below: new Map() }
  const asked = [
    ...exclude.map((name) => ({ name, action: 'exclude' as const })),
    ...hash.map((name) => ({ name, action: 'hash' as const })),
  ]
  for (const { name, action } of asked) {
    const table = tables.find((table) => table.name === firstPart(name))
    if (table === undefined) continue
    const field = toPlace({ resource, table, tables, name, action }).reduce(below, root)
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
export function toFields(
  resource: TableSource,
  { names, action }: { names: readonly string[]; action: 'exclude' | 'hash' },
): string[] {
  const tables = tablesOf(toRowPlan(resource))
  const paths = names.flatMap((name) => {
    const table = tables.find((table) => table.name === firstPart(name))
    return table === undefined
      ? []
      : [[resource.name, ...toPlace({ resource, table, tables, name, action })].join('.')]
  })
  const isBelow = (path: string) => paths.some((other) => path.startsWith(`${other}.`))
  return [...new Set(paths)].filter((path) => !isBelow(path)).toSorted()
}

const firstPart = (name: string) => name.split('.', 1)[0]!

function below(field: PrivateField, key: string): PrivateField {
  const next = field.below.get(key) ?? { below: new Map<string, PrivateField>() }
  field.below.set(key, next)
  return next
}
