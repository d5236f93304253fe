import { isDate, isTimestamp } from '../instants.ts'
import type { FilterCheck, ListResource } from './resource.ts'

/** A filter that the list does not have, or an invalid value. */
export class FilterError extends Error {
  override readonly name = 'FilterError'
  readonly retryable = false
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
  if (check.kind === 'choice' && !check.values.includes(value))
    return `must be one of ${check.values.join(', ')}`
  if (check.kind === 'integer' && !/^-?\d+$/.test(value)) return 'must be a whole number'
  if (check.kind === 'decimal' && !/^-?\d+(\.\d+)?$/.test(value)) return 'must be a number'
  if (check.kind === 'date' && !isDate(value)) return 'must be a valid date such as 2026-11-21'
  const isInstant = check.kind === 'from' || check.kind === 'to' || check.kind === 'timestamp'
  if (isInstant && !isTimestamp(value)) return 'must be a time with offset such as 2026-11-21T00:00:00-03:00'
  return undefined
}
