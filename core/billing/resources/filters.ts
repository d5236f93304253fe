/** What is known of each filter of a list: which values it takes, and how a record shows that the service honoured it. */
import type { z } from 'zod'
import { isDate, isTimestamp, toExactInstant } from '../instants.ts'
import { isRecord, numberText, toDecimal } from '../lossless-json.ts'
import { fieldOf } from './fields.ts'

/** How to check a filter of a list against the records returned. */
export type FilterCheck =
  /** The field of the record equals the value, compared by its kind. */
  | { kind: 'text' | 'integer' | 'decimal' | 'date' | 'timestamp'; field: string }
  /** One of a closed set; any other value is an error. */
  | { kind: 'choice'; field: string; values: readonly string[] }
  /** The record's text contains the value, ignoring case. */
  | { kind: 'contains'; field: string }
  /** An object in a list of the record has the value in this field. */
  | { kind: 'listItem'; list: string; field: string }
  /** `created__gte`, `created__lte`: compared as instants. */
  | { kind: 'from' | 'to'; field: string }
  /** Records do not show it; the scope of the read names the filter. */
  | { kind: 'uncheckable' }

/** A list of the API: its name, which is its path, the schema of its records, and its filters. */
export interface ListResource<Name extends string = string> {
  name: Name
  /** One record; only the id is required. */
  schema: z.ZodObject
  filters: Readonly<Record<string, FilterCheck>>
  /** The fields with the id of a record of another list, by their path in the record (`lines.plan`), and that list. */
  refersTo?: Readonly<Record<string, string>>
  /** What changes without moving `updated` of the record, so that an incremental read does not see it. */
  unmoved?: {
    fields: readonly string[]
    /** The kinds of our own changes to them. */
    byKinds: readonly string[]
  }
}

/** Filters that compare a field of the record with the value; what a value must be follows from the field. */
export const equals = (schema: z.ZodObject, names: readonly string[]): Record<string, FilterCheck> =>
  Object.fromEntries(
    names.map((name): [string, FilterCheck] => {
      const { kind, values } = fieldOf(schema, name) ?? {}
      if (values !== undefined) return [name, { kind: 'choice', field: name, values }]
      if (kind === undefined || kind === 'list' || kind === 'object' || kind === 'json' || kind === 'boolean')
        throw new TypeError(`The field ${name} has no value that a filter could equal.`)
      return [name, { kind, field: name }]
    }),
  )

/** The values of the `status` filter of a list, if it has one: used to find records that are hidden by default. */
export function statusesOf({ filters }: ListResource): readonly string[] {
  const { status } = filters
  return status?.kind === 'choice' ? status.values : []
}

/** Whether records say if they are live or test data (plans do not). */
export const carriesTestMode = ({ schema }: ListResource): boolean =>
  fieldOf(schema, 'test_mode') !== undefined

/** A filter that the list does not have, or an invalid value. */
export class FilterError extends Error {
  override readonly name = 'FilterError'
  readonly retryable = false
}

/** Whether a field of a record matches the requested value. */
type Predicate = (value: unknown) => boolean

interface FilterKind {
  isValid?: (value: string) => boolean
  /** Describes a valid value, for the error message. */
  mustBe?: string
  /** Undefined if the requested value cannot be compared. */
  toPredicate: (wanted: string) => Predicate | undefined
}

const equal =
  (wanted: string): Predicate =>
  (value) =>
    value === wanted

/** `0.10`, `0.1` and `+00.1` are the same number. */
function equalNumber(wanted: string): Predicate | undefined {
  const number = toDecimal(wanted)
  return (
    number &&
    ((value) =>
      (typeof value === 'string' || typeof value === 'number' || JSON.isRawJSON(value)) &&
      toDecimal(numberText(value))?.eq(number) === true)
  )
}

const instantThat = (agrees: (instant: bigint, wanted: bigint) => boolean): FilterKind => ({
  isValid: isTimestamp,
  mustBe: 'a time with offset such as 2026-11-21T00:00:00-03:00',
  toPredicate(wanted) {
    const bound = toExactInstant(wanted)
    if (bound === undefined) return undefined
    return (value) => {
      const instant = toExactInstant(value)
      return instant !== undefined && agrees(instant, bound)
    }
  },
})

const kinds: Record<FilterCheck['kind'], FilterKind> = {
  text: { toPredicate: equal },
  choice: { toPredicate: equal },
  listItem: { toPredicate: equal },
  date: { isValid: isDate, mustBe: 'a valid date such as 2026-11-21', toPredicate: equal },
  integer: {
    isValid: (value) => /^-?\d+$/.test(value),
    mustBe: 'a whole number',
    toPredicate: equalNumber,
  },
  decimal: {
    isValid: (value) => /^-?\d+(\.\d+)?$/.test(value),
    mustBe: 'a number',
    toPredicate: equalNumber,
  },
  timestamp: instantThat((instant, wanted) => instant === wanted),
  from: instantThat((instant, wanted) => instant >= wanted),
  to: instantThat((instant, wanted) => instant <= wanted),
  contains: {
    toPredicate(wanted) {
      const part = wanted.toLowerCase()
      return (value) => typeof value === 'string' && value.toLowerCase().includes(part)
    },
  },
  uncheckable: { toPredicate: () => undefined },
}

/**
 * Rejects what the service would silently ignore: a filter that the list does not have, or an invalid value.
 * `instant` of subscriptions (interface, section 4.2) affects the response and filters nothing.
 * @throws {FilterError}
 */
export function checkFilters(options: {
  resource: ListResource
  filters: Readonly<Record<string, string>>
}): void {
  const { resource, filters } = options
  for (const [name, value] of Object.entries(filters)) {
    const check = Object.hasOwn(resource.filters, name) ? resource.filters[name] : undefined
    if (check === undefined) {
      const known = Object.keys(resource.filters).join(', ')
      throw new FilterError(`${resource.name} can't be filtered by ${name}. Its filters are ${known}.`)
    }
    const problem = problemWith(check, value)
    if (problem !== undefined)
      throw new FilterError(`The filter ${name}=${value} of ${resource.name} ${problem}.`)
  }
}

function problemWith(check: FilterCheck, value: string): string | undefined {
  if (value === '') return 'has no value'
  if (check.kind === 'choice')
    return check.values.includes(value) ? undefined : `must be one of ${check.values.join(', ')}`
  const { isValid, mustBe } = kinds[check.kind]
  return isValid?.(value) === false ? `must be ${mustBe}` : undefined
}

export interface Filters {
  /** The name of a filter that the record does not match; undefined if all its fields match. */
  broken(record: Readonly<Record<string, unknown>>): string | undefined
  /** Filters that no field of a record can confirm. */
  uncheckable: string[]
}

/** Checks records against the filters of the request: a service may silently ignore a filter. */
export function createFilters(resource: ListResource, wanted: Readonly<Record<string, string>>): Filters {
  const checks: { name: string; field: string; list: string | undefined; agrees: Predicate }[] = []
  const uncheckable: string[] = []
  for (const [name, value] of Object.entries(wanted)) {
    const check = resource.filters[name] ?? { kind: 'uncheckable' }
    const agrees = kinds[check.kind].toPredicate(value)
    if (check.kind === 'uncheckable' || agrees === undefined) uncheckable.push(name)
    else
      checks.push({
        name,
        field: check.field,
        list: check.kind === 'listItem' ? check.list : undefined,
        agrees,
      })
  }
  return {
    uncheckable,
    // A record that does not carry the field proves nothing.
    broken: (record) =>
      checks.find(({ field, list, agrees }) => {
        if (list === undefined) return record[field] !== undefined && !agrees(record[field])
        const items = record[list]
        return Array.isArray(items) && !items.some((item) => isRecord(item) && agrees(item[field]))
      })?.name,
  }
}
