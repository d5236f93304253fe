import { Option, type Command } from 'commander'
import { newestExport } from '../runs/newest-run.ts'
import { refuseDetached, toDestinations, toMaxDeletes, type Destination } from '../runs/publish-options.ts'
import { processSettings } from '../session/settings.ts'
import type { Terminal } from '../terminal/terminal.ts'

interface Options {
  to?: Destination[]
  maxDeletes?: number | 'all'
  schema?: string
  local?: boolean
  detach?: boolean
}

/** Publishes what an export has read, from its kept parts: the service is asked nothing. */
export function configure(command: Command, terminal: Terminal): void {
  command
    .argument('<run>', 'the name of the export, or a workflow id: its newest run')
    .addOption(
      new Option(
        '--to <destinations>',
        'where to publish, with commas (default: where the export did)',
      ).argParser(toDestinations),
    )
    .option(
      '--max-deletes <n>',
      'how many records a warehouse may mark as deleted, or all (default: as the export said)',
      toMaxDeletes,
    )
    .option('--schema <name>', 'the schema in PostgreSQL (default: as the export said)')
    .option('--local', 'with a Temporal dev server and a worker of its own')
    .option('--detach', 'start the run and return')
    .action(async (name: string, { to, maxDeletes, schema, local = false, detach = false }: Options) => {
      refuseDetached({ local, detach })
      const settings = processSettings()
      const run = newestExport({ dataDir: settings.dataDir, run: name, terminal })
      const input = {
        run,
        ...(to !== undefined && { to }),
        ...(maxDeletes !== undefined && { maxDeletes }),
        ...(schema !== undefined && { schema }),
      }
      // Temporal's client and worker take a second to load: wrong usage is told before.
      const { runPublish } = await import('../runs/run-export.ts')
      await runPublish({ settings, terminal, input, local, detach })
    })
}
