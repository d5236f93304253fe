import { createHmac } from 'node:crypto'
import { z } from 'zod'
import { fieldOf, fieldsOf, type FieldMeta } from '../billing/resources/fields.ts'
import { toForm } from './drift.ts'
import { isRecord, toScalarText } from '../billing/lossless-json.ts'
import { extraColumn } from './table.ts'

/** How to treat the value at one path of a record, and the values below it. */
export interface PrivateField {
  action?: 'exclude' | 'hash'
  below: Map<string, PrivateField>
}

/** Returns the lower-case hexadecimal HMAC-SHA-256 of a value's text: equal texts have equal hashes in every table. */
export const createHash =
  (key: string) =>
  (value: unknown): string =>
    createHmac('sha256', key)
      .update(toScalarText(value) ?? JSON.stringify(value))
      .digest('hex')

/** The schema of what `createRedact` leaves of a record: excluded fields are gone, hashed ones are text. */
export function redactSchema(schema: z.ZodObject, rule: PrivateField | undefined): z.ZodObject {
  if (rule === undefined) return schema
  const left = fieldsOf(schema).flatMap(([name, meta]): [string, z.ZodType][] => {
    const below = rule.below.get(name)
    if (below?.action === 'exclude') return []
    return [[name, z.unknown().meta({ ...redactMeta(meta, below) })]]
  })
  return z.looseObject(Object.fromEntries(left))
}

function redactMeta(meta: FieldMeta, rule: PrivateField | undefined): FieldMeta {
  if (rule?.action === 'hash') return { kind: 'text', note: 'keyed hash of the value' }
  return meta.kind === 'object' || meta.kind === 'list'
    ? { ...meta, fields: redactSchema(meta.fields, rule) }
    : meta
}

/**
 * Returns what removes everything private from a record. A value of another shape than its schema's is removed if
 * anything below it is private, because nobody can tell where in it. Such a value, and an unknown field where all are
 * excluded, leaves a symbol that says what it looked like: it counts as drift, and JSON has no symbols.
 */
export function createRedact(options: {
  schema: z.ZodObject
  rule: PrivateField | undefined
  hash: (value: unknown) => string
}): (record: unknown) => unknown {
  const { hash } = options

  /** `keepsUnknown`: whether the table that the object belongs to has `_extra`. */
  function redactObject(value: unknown, of: ObjectRule): unknown {
    const { schema, rule, keepsUnknown } = of
    if (rule === undefined && (keepsUnknown || !isRecord(value))) return value
    if (!isRecord(value)) return Symbol(toForm(value))
    const names = keepsUnknown ? rule!.below.keys() : Object.keys(value)
    return change(value, names, (name, item) => {
      const below = rule?.below.get(name)
      const meta = fieldOf(schema, name)
      if (meta !== undefined) return redactField(item, { meta, rule: below, keepsUnknown })
      const left = redact(item, below)
      return left === undefined || keepsUnknown ? left : Symbol(toForm(item))
    })
  }

  function redactField(
    value: unknown,
    { meta, rule, keepsUnknown }: Omit<ObjectRule, 'schema'> & { meta: FieldMeta },
  ): unknown {
    if (rule?.action === 'exclude') return undefined
    if (value === null || value === undefined) return value
    if (meta.kind === 'object') return redactObject(value, { schema: meta.fields, rule, keepsUnknown })
    if (meta.kind !== 'list') return redact(value, rule) ?? Symbol(toForm(value))
    if (rule === undefined) return value
    if (!Array.isArray(value)) return Symbol(toForm(value))
    const items = { schema: meta.fields, rule, keepsUnknown: keepsExtra(rule) }
    return value.map((item: unknown) => redactObject(item, items))
  }

  /** Lists are searched item by item. A scalar in place of an object with private fields is removed. */
  function redact(value: unknown, rule: PrivateField | undefined): unknown {
    if (rule === undefined || value === null) return value
    if (rule.action === 'exclude') return undefined
    if (rule.action === 'hash') return hash(value)
    if (Array.isArray(value)) return value.map((item: unknown) => redact(item, rule) ?? null)
    if (!isRecord(value)) return undefined
    return change(value, rule.below.keys(), (name, item) => redact(item, rule.below.get(name)))
  }

  const { schema, rule } = options
  return (record) => redactObject(record, { schema, rule, keepsUnknown: keepsExtra(rule) })
}

interface ObjectRule {
  schema: z.ZodObject
  rule: PrivateField | undefined
  keepsUnknown: boolean
}

/** Whether unknown fields of a table's objects may be kept. */
export const keepsExtra = (rule: PrivateField | undefined) =>
  rule?.below.get(extraColumn)?.action !== 'exclude'

/** A copy of an object with some fields changed. A removed one is undefined: deleting it would make the copy slow. */
function change(
  value: Readonly<Record<string, unknown>>,
  names: Iterable<string>,
  toNew: (name: string, item: unknown) => unknown,
): Record<string, unknown> {
  const copy = { ...value }
  for (const name of names) if (Object.hasOwn(copy, name)) copy[name] = toNew(name, copy[name])
  return copy
}
