import type { Command } from 'commander'
import { MappingError } from '../../core/imports/errors.ts'
import { importKindNames } from '../../core/imports/kinds.ts'
import { template } from '../../core/imports/mapping/template.ts'
import { UsageError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** A CSV header of a kind with one example row, on stdout. */
export function configure(command: Command, terminal: Terminal): void {
  command
    .argument('<kind>', importKindNames.join(', '))
    .option('--locale <locale>', 'how numbers and dates are written, as es-CL')
    .action((name: string, { locale }: { locale?: string }) => {
      const kind = importKindNames.find((one) => one === name)
      if (kind === undefined)
        throw new UsageError(`There is no kind ${name}; choose from ${importKindNames.join(', ')}.`)
      const text = toText(() => template({ kind, ...(locale !== undefined && { locale }) }))
      terminal.result({ document: { kind, template: text }, text: text.replace(/\r?\n$/, '') })
    })
}

function toText(make: () => string): string {
  try {
    return make()
  } catch (error) {
    throw error instanceof MappingError ? new UsageError(error.message, { cause: error }) : error
  }
}
