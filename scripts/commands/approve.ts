import type { Command } from 'commander'
import { personHere } from '../runs/ask.ts'
import { updateImport } from '../runs/update-import.ts'
import { processSettings } from '../session/settings.ts'
import type { Terminal } from '../terminal/terminal.ts'

interface Options {
  why: string
  by?: string
  count?: string
}

export function configure(command: Command, terminal: Terminal): void {
  command
    .argument('<run>', 'the workflow id of the run')
    .requiredOption('--why <words>', 'why; it goes into the report')
    .option('--by <name>', 'who (default: the user of this machine)')
    .option('--count <n>', 'of deletes: how many, typed')
    .action(async (run: string, { why, by = personHere(), count }: Options) => {
      const input = { by, why, ...(count !== undefined && { count: Number(count) }) }
      const answer = await updateImport<string>({ settings: processSettings(), run, name: 'approve', input })
      terminal.result({ document: { run, answer }, text: `${run} goes on: ${answer}.` })
    })
}
