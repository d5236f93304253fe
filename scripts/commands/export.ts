import type { Command } from 'commander'
import { checkFilters, type ListResource, statusesOf } from '../../core/billing/resources/filters.ts'
import { listNames, listResources } from '../../core/billing/resources/lists.ts'

import { allowedRoot } from '../../core/storage/inside.ts'
import { type ExportInput, exportInput, publishAgainInput } from '../../core/exports/input.ts'
import { checkPrivacy } from '../../core/tables/privacy.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { newestExport } from '../runs/newest-run.ts'
import { processSettings } from '../session/settings.ts'
import type { Terminal } from '../terminal/terminal.ts'
import {
  addExamples,
  addInputArgument,
  addInputOptions,
  addServerOptions,
  callersPath,
  choice,
  inputOf,
  toServer,
  type ServerOptions,
} from './options.ts'

export function configureExport(command: Command, terminal: Terminal): void {
  addInputArgument(command, exportInput, '[resources...]')
  addInputOptions(command, exportInput)
  addServerOptions(command).action(async (resources: ExportInput['resources'] & {}, typed: ServerOptions) => {
    const server = toServer(typed)
    const { out, ...options } = inputOf(exportInput, typed)
    const input: ExportInput = {
      ...options,
      ...(resources.length > 0 && { resources }),
      ...(out !== undefined && { out: callersPath(out) }),
    }
    const settings = processSettings()
    for (const name of input.resources ?? listNames)
      checkListFilters({ resource: listResources[name], filters: input.filters ?? {} })
    await checkReading({ ...input, resources: Object.values(listResources), settings, ...server })
    // Loaded late: Temporal's client and worker take a second to load, and usage errors are reported first.
    const { runExport } = await import('../runs/run-export.ts')
    await runExport({ settings, terminal, input, ...server })
  })
  addExamples(command, 'run', {
    'export --local': 'all lists to CSV, with a Temporal server of its own',
    'export customers --to duckdb,parquet': 'one list to two destinations',
    'export subscriptions --to postgres --mode incremental': 'what changed since the last proven export',
  })
}

/** Publishes an export again from its kept parts, without any request to the service. */
export function configurePublish(command: Command, terminal: Terminal): void {
  command.argument('<run>', 'name of the export, or a workflow id for its newest run')
  addInputOptions(command, publishAgainInput)
  addServerOptions(command).action(async (name: string, typed: ServerOptions) => {
    const server = toServer(typed)
    const settings = processSettings()
    const run = await newestExport({ places: settings, run: name, terminal })
    const input = { ...inputOf(publishAgainInput, typed), run }
    // Loaded late: Temporal's client and worker take a second to load, and usage errors are reported first.
    const { runPublish } = await import('../runs/run-export.ts')
    await runPublish({ settings, terminal, input, ...server })
  })
  addExamples(command, 'run', {
    'run publish export-all-1f0c2b7a90 --to postgres': 'publish to another destination',
    'run publish export-all-1f0c2b7a90 --max-deletes all': 'accept the deletes that the export held back',
  })
}

/**
 * Checks the filters of a list before anything is started.
 *
 * @throws {UsageError} the list does not have the status
 * @throws {FilterError} a filter is invalid for the list
 */
function checkListFilters(options: {
  resource: ListResource
  filters: Readonly<Record<string, string>>
}): void {
  const { name } = options.resource
  const statuses = statusesOf(options.resource)
  const { status } = options.filters
  if (status !== undefined && statuses.length > 0) choice(`status of ${name}`, statuses)(status)
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
