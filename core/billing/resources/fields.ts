/**
 * The field kinds of the API (interface, section 2) as zod schemas.
 *
 * The schemas are tolerant: fields are nullish, and unknown keys are kept. The metadata of each field (kind, write rule,
 * maximum length) is defined here once; tables, columns, the docs page and the rules for writes derive from it.
 */
import { z } from 'zod'

/** The kind of a column that holds one value. `json` holds anything, as JSON text. */
export type Kind = 'text' | 'integer' | 'decimal' | 'boolean' | 'date' | 'timestamp' | 'json'

/** The write rule of the API: `readOnly` fields are never sent. Absent if the API documents none. */
type WriteRule = 'required' | 'optional' | 'readOnly'

interface FieldRules {
  write?: WriteRule
  /** The API says that the value may be null, so null may be written. */
  nullable?: boolean
  /** Longest text in characters (interface, section 8). */
  maxLength?: number
  /** The minimum (interface, section 8). */
  min?: string
  /** The service's default for a create without the field. */
  default?: string
  /** The full set of values, if the API documents it. */
  values?: readonly string[]
  format?: 'email'
  /** Prose or a name that people read: letters that nobody sees are part of it, as in an emoji. */
  isFreeText?: true
  /** The docs page's sentence about the field. */
  note?: string
}

export type FieldMeta = FieldRules &
  ({ kind: Kind } | { kind: 'object'; fields: z.ZodObject } | { kind: 'list'; fields: z.ZodObject })

/** A number with all digits as the service wrote them; see `lossless-json.ts`. */
export type RawNumber = { readonly rawJSON: string }
/** Django sends decimals as strings by default, so a number may be text. */
export type Numeric = number | string | RawNumber

const rawNumber = z.custom<RawNumber>((value) => JSON.isRawJSON(value))
const numeric = z.union([z.number(), z.string(), rawNumber])

const field = <T extends z.ZodType>(schema: T, meta: FieldMeta) => schema.nullish().meta({ ...meta })

export const text = (rules: FieldRules = {}) => field(z.string(), { kind: 'text', ...rules })
/** A text for people. */
export const freeText = (rules: FieldRules = {}) => text({ ...rules, isFreeText: true })
export const integer = (rules: FieldRules = {}) => field(numeric, { kind: 'integer', ...rules })
export const decimal = (rules: FieldRules = {}) => field(numeric, { kind: 'decimal', ...rules })
export const boolean = (rules: FieldRules = {}) => field(z.boolean(), { kind: 'boolean', ...rules })
export const date = (rules: FieldRules = {}) => field(z.string(), { kind: 'date', ...rules })
export const timestamp = (rules: FieldRules = {}) => field(z.string(), { kind: 'timestamp', ...rules })
/** An object of unknown shape, or an array of scalars: one JSON column. */
export const json = (rules: FieldRules = {}) => field(z.unknown(), { kind: 'json', ...rules })
/** One of a closed set of texts: new values are accepted in reads (they must not stop an export), but not in writes. */
export const choice = (values: readonly string[], rules: FieldRules = {}) => text({ ...rules, values })
/** A nested object: its fields become columns `<field>_<inner>`. */
export const object = <T extends z.ZodObject>(fields: T, rules: FieldRules = {}) =>
  field(fields, { kind: 'object', fields, ...rules })
/** An array of objects: a child table. */
export const list = <T extends z.ZodObject>(fields: T, rules: FieldRules = {}) =>
  field(z.array(fields), { kind: 'list', fields, ...rules })

const fieldsOfSchema = new WeakMap<z.ZodObject, readonly [name: string, meta: FieldMeta][]>()

/** The fields of a schema with the metadata that the builders above gave them, in the schema's order. */
export function fieldsOf(schema: z.ZodObject): readonly [name: string, meta: FieldMeta][] {
  const known = fieldsOfSchema.get(schema)
  if (known !== undefined) return known
  const fields = Object.entries(schema.shape).map(([name, field]): [string, FieldMeta] => {
    const meta = field instanceof z.ZodType ? field.meta() : undefined
    if (meta === undefined || !isFieldMeta(meta))
      throw new TypeError(`The field ${name} was not made by billing/resources/fields.ts: it has no kind.`)
    return [name, meta]
  })
  fieldsOfSchema.set(schema, fields)
  return fields
}

const isFieldMeta = (meta: object): meta is FieldMeta => 'kind' in meta && typeof meta.kind === 'string'

/** The metadata of one field; undefined if the schema does not have it. */
export const fieldOf = (schema: z.ZodObject, name: string): FieldMeta | undefined =>
  fieldsOf(schema).find(([key]) => key === name)?.[1]
