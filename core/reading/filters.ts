import type { FilterCheck, ListResource } from '../billing/resources/resource.ts'
import { numberText, toDecimal } from '../billing/lossless-json.ts'
import { toInstant } from './instant.ts'
import { isRecord, type SourceRecord } from './record.ts'

export interface Filters {
  /** The name of a filter that the record does not match; undefined if all its fields match. */
  broken(record: SourceRecord): string | undefined
  /** Filters that no field of a record can confirm. */
  uncheckable: string[]
}

/** Checks records against the filters of the request: a service may silently ignore a filter. */
export function createFilters(resource: ListResource, wanted: Readonly<Record<string, string>>): Filters {
  const checks: { name: string; agrees: (record: SourceRecord) => boolean }[] = []
  const uncheckable: string[] = []
  for (const [name, value] of Object.entries(wanted)) {
    const agrees = toCheck(resource.filters[name] ?? { kind: 'uncheckable' }, value)
    if (agrees === undefined) uncheckable.push(name)
    else checks.push({ name, agrees })
  }
  return { broken: (record) => checks.find(({ agrees }) => !agrees(record))?.name, uncheckable }
}

function toCheck(check: FilterCheck, wanted: string): ((record: SourceRecord) => boolean) | undefined {
  if (check.kind === 'uncheckable') return undefined
  const { field } = check
  if (check.kind === 'listItem')
    return (record) => {
      const items = record[check.list]
      return !Array.isArray(items) || items.some((item) => isRecord(item) && item[field] === wanted)
    }
  const agrees = comparison(check.kind, wanted)
  return agrees && ((record) => record[field] === undefined || agrees(record[field]))
}

/** A predicate for the field's value; undefined if the requested value cannot be compared. */
function comparison(
  kind: Exclude<FilterCheck['kind'], 'uncheckable' | 'listItem'>,
  wanted: string,
): ((value: unknown) => boolean) | undefined {
  switch (kind) {
    case 'contains': {
      const part = wanted.toLowerCase()
      return (value) => typeof value === 'string' && value.toLowerCase().includes(part)
    }
    case 'integer':
    case 'decimal': {
      const number = toDecimal(wanted)
      return number === undefined ? undefined : (value) => decimalOf(value)?.eq(number) ?? false
    }
    case 'timestamp':
    case 'from':
    case 'to': {
      const instant = toInstant(wanted)
      return instant === undefined ? undefined : (value) => inRange(kind, toInstant(value), instant)
    }
    default:
      return (value) => value === wanted
  }
}

function inRange(kind: 'timestamp' | 'from' | 'to', value: number | undefined, wanted: number): boolean {
  if (value === undefined) return false
  return kind === 'from' ? value >= wanted : kind === 'to' ? value <= wanted : value === wanted
}

/** `0.10`, `0.1` and `+00.1` are the same number. */
const decimalOf = (value: unknown) =>
  typeof value === 'string' || typeof value === 'number' || JSON.isRawJSON(value)
    ? toDecimal(numberText(value))
    : undefined
