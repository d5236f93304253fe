import type { Command } from 'commander'
import { personHere } from '../runs/person.ts'
import { updateImport } from '../runs/update-import.ts'
import { processSettings } from '../session/settings.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addExamples, byOption, toWholeNumber } from './options.ts'

interface Options {
  why: string
  by?: string
  count?: number
}

export function configure(command: Command, terminal: Terminal): void {
  command
    .argument('<run>', 'workflow id of the run')
    .requiredOption('--why <reason>', 'your reason; it goes into the report')
    .addOption(byOption())
    .option('--count <n>', 'for deletes: how many there are, typed by you', toWholeNumber)
    .action(async (run: string, { why, by = personHere(), count }: Options) => {
      const input = { by, why, ...(count !== undefined && { count }) }
      const answer = await updateImport<string>({
        settings: processSettings(),
        terminal,
        run,
        name: 'approve',
        input,
      })
      terminal.result({ document: { run, answer }, text: `${run} continues: ${answer}.` })
    })
  addExamples(command, 'inspect', {
    'approve import-retentions-rows-6a47033b --why "totals match the sheet"':
      'send what the run has previewed',
    'approve import-delete-orders-rows-6a47033b --count 12 --why "cancelled by the customer"':
      'approve 12 deletes',
  })
}
