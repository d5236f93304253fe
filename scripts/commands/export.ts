import type { Command } from 'commander'
import { type ExportInput, exportInput } from '../../core/exports/input.ts'
import { listNames, listResources } from '../../core/billing/resources/lists.ts'
import { processSettings } from '../session/settings.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addInputArgument, addInputOptions, inputOf } from './input-options.ts'
import { checkListFilters, checkReading } from './check-reading.ts'
import { addExamples, addServerOptions, callersPath, toServer, type ServerOptions } from './options.ts'

export function configure(command: Command, terminal: Terminal): void {
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
