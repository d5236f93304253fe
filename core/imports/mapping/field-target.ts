import type { z } from 'zod'
import { type FieldMeta, fieldOf, fieldsOf } from '../../billing/resources/fields.ts'
import { comparableName } from '../cells/invisible.ts'
import type { ImportKind } from '../kinds.ts'

/** Stands for the index of a row within its change: its item of the list. */
export const eachRow = Symbol('each row')

export type Step = string | number | typeof eachRow

/** The field that the cells of a column belong to. */
export interface FieldTarget {
  /** As a header has it: `total`, `lines.2.amount`, `lines.amount`. */
  name: string
  path: readonly Step[]
  meta: FieldMeta
  readOnly: boolean
}

/** A larger index is a typo rather than a list. */
const mostItems = 500

/**
 * Resolves a name to a field of a kind: `total`; `lines` (a JSON cell); `lines.2.amount` (the second line);
 * `lines.amount` or `line.amount` (each row is a line). Ignores case and surrounding whitespace.
 */
export function toTarget({ kind, name }: { kind: ImportKind; name: string }): FieldTarget | undefined {
  const parts = comparableName(name).split('.')
  if (kind.list !== undefined && `${parts[0]}s` === kind.list) parts[0] = kind.list
  const found = walk({ kind, fields: kind.schema, parts, path: [], readOnly: false })
  return found && { ...found, name: parts.join('.') }
}

interface Walk {
  kind: ImportKind
  fields: z.ZodObject
  parts: readonly string[]
  path: readonly Step[]
  readOnly: boolean
}

function walk({ kind, fields, parts, path, readOnly }: Walk): Omit<FieldTarget, 'name'> | undefined {
  const [name = '', ...rest] = parts
  const meta = fieldOf(fields, name)
  if (meta === undefined) return undefined
  const here = { kind, path: [...path, name], readOnly: readOnly || meta.write === 'readOnly' }
  if (rest.length === 0) return meta.kind === 'object' ? undefined : { ...here, meta }
  if (meta.kind === 'object') return walk({ ...here, fields: meta.fields, parts: rest })
  if (meta.kind !== 'list') return undefined
  const [place = '', ...inner] = rest
  if (!/^\d+$/.test(place)) {
    if (path.length > 0 || name !== kind.list) return undefined
    return walk({ ...here, fields: meta.fields, parts: rest, path: [...here.path, eachRow] })
  }
  const item = Number(place)
  if (inner.length === 0 || item < 1 || item > mostItems) return undefined
  return walk({ ...here, fields: meta.fields, parts: inner, path: [...here.path, item - 1] })
}

/** The names that select a field: its own, and that of its list. */
export const namesOf = ({ name, path }: FieldTarget): string[] => [name, String(path[0])]

/** Valid header names, to suggest for a mistyped one. */
export function knownNames(kind: ImportKind): string[] {
  const writable = ([, meta]: [string, FieldMeta]) => meta.write !== 'readOnly'
  return fieldsOf(kind.schema).flatMap(([key, meta]) => {
    if (key === 'id' && kind.does !== 'create') return [key]
    if (!writable([key, meta])) return []
    if (meta.kind !== 'list') return [key]
    const inner = fieldsOf(meta.fields).filter((field) => writable(field))
    const each = key === kind.list ? inner.map(([field]) => `${key}.${field}`) : []
    return [key, ...each, ...inner.map(([field]) => `${key}.1.${field}`)]
  })
}
