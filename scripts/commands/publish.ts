import type { Command } from 'commander'
import { publishAgainInput } from '../../core/exports/input.ts'
import { newestExport } from '../runs/newest-run.ts'
import { processSettings } from '../session/settings.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addInputOptions, inputOf } from './input-options.ts'
import { addExamples, addServerOptions, toServer, type ServerOptions } from './options.ts'

/** Publishes an export again from its kept parts, without any request to the service. */
export function configure(command: Command, terminal: Terminal): void {
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
    'publish export-all-20261121-020000 --to postgres': 'publish to another destination',
    'publish export-all-20261121-020000 --max-deletes all': 'accept the deletes that the export held back',
  })
}
