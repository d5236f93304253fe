import { checkFilters } from '../../core/billing/resources/filters.ts'
import type { ListResource } from '../../core/billing/resources/filters.ts'
import { allowedRoot } from '../../core/storage/inside.ts'
import { checkPrivacy } from '../../core/tables/privacy.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { choice } from './options.ts'

/**
 * Checks the filters of a list before anything is started.
 *
 * @throws {UsageError} the list does not have the status
 * @throws {FilterError} a filter is invalid for the list
 */
export function checkListFilters(options: {
  resource: ListResource
  filters: Readonly<Record<string, string>>
}): void {
  const { name, statuses } = options.resource
  const { status } = options.filters
  if (status !== undefined && statuses !== undefined) choice(`status of ${name}`, statuses)(status)
  checkFilters(options)
}

/**
 * Reports, before any server is started, columns and folders that would fail the run immediately. Another worker has its
 * own key and folders, and checks both itself.
 */
export async function checkReading(of: {
  resources: Parameters<typeof checkPrivacy>[0]
  exclude?: string[] | undefined
  hash?: string[] | undefined
  out?: string | undefined
  settings: Settings
  local: boolean
}): Promise<void> {
  const { resources, exclude = [], hash = [], out, settings, local } = of
  checkPrivacy(resources, { exclude, hash, hashKey: local ? (settings.hashKey ?? '') : 'of the worker' })
  if (local && out !== undefined) await allowedRoot({ ...settings, out })
}
