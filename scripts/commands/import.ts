import type { Command } from 'commander'
import { InvalidMapping } from '../../core/imports/errors.ts'
import { type ImportInput, importInput } from '../../core/imports/input.ts'
import { readingFields, readingOf, readMapping, toMapping } from '../../core/imports/mapping/mapping.ts'
import { template } from '../../core/imports/mapping/columns.ts'
import { typedOptions } from '../../core/runs/inputs.ts'
import type { ImportOrder } from '../runs/import.ts'
import {
  addExamples,
  addInputArgument,
  addInputOptions,
  addOtherFields,
  addServerOptions,
  callersPath,
  inputOf,
  processSettings,
  type ServerOptions,
  toServer,
} from './options.ts'
import { refuseFile, UsageError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'

type Options = ServerOptions &
  Omit<ImportInput, 'kind' | 'file'> & {
    yes?: boolean
    template?: boolean
    map?: string[]
    set?: string[]
    lookup?: string[]
  }

/** Repeatable. A value may contain a comma. */
const collect = (text: string, before: readonly string[] = []): string[] => [...before, text]

export function configure(command: Command, terminal: Terminal): void {
  addInputArgument(command, importInput, '<kind>')
  command.argument('[file]', 'CSV file or .xlsx workbook')
  addOtherFields(addInputOptions(command, importInput), importInput)
    .option('--map <theirs=ours>', 'a column of the file and the field it is; repeatable', collect)
    .option('--set <field=value>', 'a field with the same value in every row; repeatable', collect)
    .option('--lookup <field=file>', 'a file with two columns, theirs and ours; repeatable', collect)
    .option('--template', 'print the header of a CSV file and an example row, and nothing else')
    .option('--yes', 'do not ask on a terminal')
  addServerOptions(command).action(async (kind: ImportInput['kind'], file = '', options: Options) => {
    if (options.template) return printTemplate(kind, options, terminal)
    if (file === '') throw new UsageError('Name the file to import, or add --template.')
    const server = toServer(options)
    const settings = processSettings()
    const order = await toOrder({ kind, file }, options)
    // Loaded late: Temporal's client and worker take a second to load, and usage errors are reported first.
    const { runImport } = await import('../runs/import.ts')
    await runImport({ settings, terminal, ...order, ...server })
  })
  addExamples(command, 'run', {
    'import retentions --template --locale es-CL > rows.csv': 'start a file to fill in',
    'import retentions rows.csv --mapping mapping.json --dry-run': 'list every problem, send nothing',
    'import retentions rows.csv --mapping mapping.json --expect-rows 30 --expect-total amount=1883.50':
      'send only if the totals match',
    'import retentions rows.csv --on-invalid skip --local':
      'send the valid rows, with a Temporal server of its own',
  })
}

function printTemplate(kind: ImportInput['kind'], { locale }: Options, terminal: Terminal): void {
  try {
    const text = template({ kind, ...(locale !== undefined && { locale }) })
    terminal.result({ document: { kind, template: text }, text: text.replace(/\r?\n$/, '') })
  } catch (error) {
    throw error instanceof InvalidMapping ? new UsageError(error.message, { cause: error }) : error
  }
}

type Named = Pick<ImportInput, 'kind' | 'file'>

async function toOrder({ kind, file }: Named, options: Options): Promise<ImportOrder> {
  const { map = [], set = [], yes = false } = options
  const { mapping: typed, ...input } = inputOf(importInput, options)
  const mapping = typed && callersPath(typed)
  const base = mapping === undefined ? {} : await readMapping(mapping).catch(refuseFile)
  const lookup = (options.lookup ?? []).map(withCallersPath)
  const { columns, ...others } = input
  const pairs = Object.entries({ map, set, lookup }).flatMap(([option, texts]) =>
    texts.map((text): [string, string] => [option, text]),
  )
  return {
    file: callersPath(file),
    reading: [
      ...typedOptions(importInput, { mapping, columns }),
      ...pairs,
      ...typedOptions(importInput, readingOf(others)),
    ],
    mapping: toMapping({ ...input, base, map, set, lookup }),
    input: { ...withoutReading(input), kind },
    yes,
  }
}

/** Without what says how the file is written: the mapping has it. */
const withoutReading = (input: Omit<ImportInput, 'kind' | 'file'>) =>
  Object.fromEntries(Object.entries(input).filter(([name]) => !(name in readingFields)))

function withCallersPath(text: string): string {
  const at = text.indexOf('=')
  return at < 1 ? text : `${text.slice(0, at)}=${callersPath(text.slice(at + 1).trim())}`
}
