import { isRawNumber } from '../billing/lossless-json.ts'

/** Where the records differ from their schema, by path: `customers.aggregations.sales`. */
export interface Drift {
  /** How many values their columns could not hold, and what the first of them looks like. */
  misfits: Record<string, { count: number; example: string }>
  /** How many objects have a field that the schema lacks. */
  unknownFields: Record<string, number>
  /** For each object of the schema that occurred: the fields that it never had. */
  absent: Record<string, string[]>
}

export const noDrift = (): Drift => ({ misfits: {}, unknownFields: {}, absent: {} })

/** No more are told apart: a service that names fields after its records must not fill the checkpoints. */
const mostUnknownFields = 50

/** Adds the drift of further records. */
export function addDrift(drift: Drift, more: Drift): void {
  // `for in`: runs once for each record, and drift is almost always empty.
  for (const path in more.misfits) {
    const { count, example } = more.misfits[path]!
    const known = drift.misfits[path]
    drift.misfits[path] = { count: (known?.count ?? 0) + count, example: known?.example ?? example }
  }
  for (const path in more.unknownFields) countUnknown(drift, path, more.unknownFields[path])
  for (const path in more.absent) {
    const fields = more.absent[path]!
    drift.absent[path] = drift.absent[path]?.filter((field) => fields.includes(field)) ?? [...fields]
  }
}

/** Counts a value that its column cannot hold. */
export function countMisfit({ misfits }: Drift, path: string, value: unknown): void {
  const known = misfits[path]
  if (known === undefined) misfits[path] = { count: 1, example: toForm(value) }
  else known.count += 1
}

/** Counts a field that the schema lacks. */
export function countUnknown({ unknownFields }: Drift, name: string, count = 1): void {
  // JSON may have half a pair of surrogates in a name; DuckDB takes no manifest with one.
  const path = name.toWellFormed()
  if (Object.hasOwn(unknownFields, path) || Object.keys(unknownFields).length < mostUnknownFields)
    unknownFields[path] = (unknownFields[path] ?? 0) + count
}

const longestForm = 24

/** Describes a value to people who may not see it: `text like 99/99/9999`. */
export function toForm(value: unknown): string {
  if (typeof value === 'symbol') return value.description ?? ''
  if (typeof value === 'number' || isRawNumber(value)) return 'a number'
  if (typeof value === 'boolean') return 'true or false'
  if (Array.isArray(value)) return 'a list'
  if (typeof value !== 'string') return 'an object'
  if (value === '') return 'an empty text'
  const form = value
    .slice(0, longestForm)
    .replaceAll(/(?!\p{Lu})\p{L}/gu, 'a')
    .replaceAll(/\p{Lu}/gu, 'A')
    .replaceAll(/\p{Nd}/gu, '9')
    .replaceAll(/[^Aa9 +\-.,:;/_@#%()]/gu, '?')
  return `text like ${form}${value.length > longestForm ? '...' : ''}`
}
