/**
 * The field kinds of the interface (its section 2), as zod schemas.
 *
 * A schema is tolerant: what the service may leave out or send as null is nullish, unknown keys stay.
 * What a field *is* (its kind, whether a client may write it, how long it may be) is said once, here, as the
 * schema's metadata; tables, columns, the docs page and the rules for writes are made from that.
 */
import { z } from 'zod'

/** The kind of a column that holds one value. `json` holds anything, as JSON text. */
export type Kind = 'text' | 'integer' | 'decimal' | 'boolean' | 'date' | 'timestamp' | 'json'

/** The write rule of the interface: `readOnly` fields are never sent. Absent where the interface shows none. */
export type WriteRule = 'required' | 'optional' | 'readOnly'

export interface FieldRules {
  write?: WriteRule
  /** The interface says that the value may be null, so null may be written too. */
  nullable?: boolean
  /** Longest text in characters (interface, section 8). */
  maxLength?: number
  /** The least number allowed (interface, section 8). */
  min?: string
  /** What the service takes where a create leaves the field out. */
  default?: string
  /** The full set of values, where the interface gives one. */
  values?: readonly string[]
  format?: 'email'
  /** The docs page's sentence about the field. */
  note?: string
}

export type FieldMeta = FieldRules &
  ({ kind: Kind } | { kind: 'object'; fields: z.ZodObject } | { kind: 'list'; fields: z.ZodObject })

/** A number as the service wrote it, digit for digit; see `lossless-json.ts`. */
export type RawNumber = { readonly rawJSON: string }
/** Django writes decimals as strings by default, so a number may come as text. */
export type Numeric = number | string | RawNumber

const rawNumber = z.custom<RawNumber>((value) => JSON.isRawJSON(value))
const numeric = z.union([z.number(), z.string(), rawNumber])

const field = <T extends z.ZodType>(schema: T, meta: FieldMeta) => schema.nullish().meta({ ...meta })

export const text = (rules: FieldRules = {}) => field(z.string(), { kind: 'text', ...rules })
export const integer = (rules: FieldRules = {}) => field(numeric, { kind: 'integer', ...rules })
export const decimal = (rules: FieldRules = {}) => field(numeric, { kind: 'decimal', ...rules })
export const boolean = (rules: FieldRules = {}) => field(z.boolean(), { kind: 'boolean', ...rules })
export const date = (rules: FieldRules = {}) => field(z.string(), { kind: 'date', ...rules })
export const timestamp = (rules: FieldRules = {}) => field(z.string(), { kind: 'timestamp', ...rules })
/** An object of no known shape, or an array of scalars: one JSON column. */
export const json = (rules: FieldRules = {}) => field(z.unknown(), { kind: 'json', ...rules })
/** One of a closed set of texts. Read tolerantly (a new value must not stop an export), written strictly. */
export const choice = (values: readonly string[], rules: FieldRules = {}) => text({ ...rules, values })
/** A nested object: its fields become columns `<field>_<inner>`. */
export const object = <T extends z.ZodObject>(fields: T, rules: FieldRules = {}) =>
  field(fields, { kind: 'object', fields, ...rules })
/** An array of objects: a child table. */
export const list = <T extends z.ZodObject>(fields: T, rules: FieldRules = {}) =>
  field(z.array(fields), { kind: 'list', fields, ...rules })

/** The metadata that one of the builders above gave a schema. */
export function fieldMeta(schema: z.ZodType): FieldMeta {
  const meta = schema.meta()
  if (meta === undefined || !('kind' in meta))
    throw new TypeError('not a field made by billing/resources/fields.ts')
  return meta as unknown as FieldMeta
}
