import { Option, type Command } from 'commander'
import type { DestinationName } from '../../core/destinations/names.ts'
import { newestExport } from '../runs/newest-run.ts'
import { processSettings } from '../session/settings.ts'
import type { Terminal } from '../terminal/terminal.ts'
import {
  addExamples,
  addServerOptions,
  schemaOption,
  toDestinations,
  toMaxDeletes,
  toServer,
  type ServerOptions,
} from './options.ts'

interface Options extends ServerOptions {
  to?: DestinationName[]
  maxDeletes?: number | 'all'
  schema?: string
}

/** Publishes an export again from its kept parts, without any request to the service. */
export function configure(command: Command, terminal: Terminal): void {
  const toOption = new Option('--to <destinations>', 'where to publish (default: as the export did)')
  command
    .argument('<run>', 'name of the export, or a workflow id for its newest run')
    .addOption(toOption.argParser(toDestinations))
    .option(
      '--max-deletes <n>',
      'maximum number of records to mark as deleted in a warehouse, or all (default: as in the export)',
      toMaxDeletes,
    )
    .addOption(schemaOption('as in the export'))
  addServerOptions(command).action(async (name: string, { to, maxDeletes, schema, ...options }: Options) => {
    const server = toServer(options)
    const settings = processSettings()
    const run = await newestExport({ places: settings, run: name, terminal })
    const input = {
      run,
      ...(to !== undefined && { to }),
      ...(maxDeletes !== undefined && { maxDeletes }),
      ...(schema !== undefined && { schema }),
    }
    // Loaded late: Temporal's client and worker take a second to load, and usage errors are reported first.
    const { runPublish } = await import('../runs/run-export.ts')
    await runPublish({ settings, terminal, input, ...server })
  })
  addExamples(command, 'run', {
    'publish export-all-20261121-020000 --to postgres': 'publish to another destination',
    'publish export-all-20261121-020000 --max-deletes all': 'accept the deletes that the export held back',
  })
}
