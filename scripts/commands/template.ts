import type { Command } from 'commander'
import { InvalidMapping } from '../../core/imports/errors.ts'
import { importKindNames } from '../../core/imports/kinds.ts'
import { template } from '../../core/imports/mapping/template.ts'
import { UsageError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addExamples, choice } from './options.ts'

export function configure(command: Command, terminal: Terminal): void {
  command
    .argument('<kind>', importKindNames.join(', '))
    .option('--locale <locale>', 'notation of numbers and dates, as in es-CL')
    .action((name: string, { locale }: { locale?: string }) => {
      const kind = choice('kind', importKindNames)(name)
      const text = toText(() => template({ kind, ...(locale !== undefined && { locale }) }))
      terminal.result({ document: { kind, template: text }, text: text.replace(/\r?\n$/, '') })
    })
  addExamples(command, 'inspect', {
    'template retentions > retentions.csv': 'start a file to fill in',
    'template addons --locale es-CL': 'with decimal commas and day-first dates',
  })
}

function toText(make: () => string): string {
  try {
    return make()
  } catch (error) {
    throw error instanceof InvalidMapping ? new UsageError(error.message, { cause: error }) : error
  }
}
