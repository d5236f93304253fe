import { Option, type Command } from 'commander'
import { parseExpectedTotal } from '../../core/imports/totals.ts'
import { encodings } from '../../core/imports/csv/encoding.ts'
import { importKindNames } from '../../core/imports/kinds.ts'
import { type readingFields, readingOf, readMapping, toMapping } from '../../core/imports/mapping/mapping.ts'
import type { ImportOrder } from '../runs/import-request.ts'
import { processSettings } from '../session/settings.ts'
import { RefusedError, UsageError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import {
  addExamples,
  addServerOptions,
  asText,
  callersPath,
  choice,
  collect,
  rateOption,
  toList,
  toServer,
  toWholeNumber,
  type ServerOptions,
} from './options.ts'

type Reading = { [name in keyof typeof readingFields]?: string | number | readonly (string | number)[] }

interface Options extends ServerOptions, Reading {
  dryRun?: true
  canary?: number
  waitForApproval?: true
  yes?: true
  onInvalid?: 'stop' | 'skip'
  done?: 'refuse' | 'skip'
  existing?: 'refuse' | 'skip' | 'create'
  map?: string[]
  set?: string[]
  lookup?: string[]
  mapping?: string
  columns?: string[]
  sendAgain?: true
  rows?: number[]
  expectRows?: number
  expectTotal?: string[]
  maxFailures?: number
  rate?: number
  show?: 'json'
}

export function configure(command: Command, terminal: Terminal): void {
  command
    .argument('<kind>', importKindNames.join(', '))
    .argument('<file>', 'CSV file or .xlsx workbook')
    .option('--dry-run', 'check everything and show the control totals; send nothing')
    .option(
      '--canary <n>',
      'how many different rows to send first (default: 3, above 20 rows)',
      toWholeNumber,
    )
    .option('--wait-for-approval', 'send nothing until somebody approves (connector approve)')
    .addOption(new Option('--show <form>', 'show the canary in full, as JSON').choices(['json']))
    .option('--yes', 'do not ask on a terminal')
    .addOption(
      new Option('--on-invalid <action>', 'if the file has invalid rows (default: stop)').choices([
        'stop',
        'skip',
      ]),
    )
    .addOption(
      new Option('--done <action>', 'if an earlier run has done some rows (default: refuse)').choices([
        'refuse',
        'skip',
      ]),
    )
    .addOption(
      new Option(
        '--existing <action>',
        'if the service already has some retentions (default: refuse)',
      ).choices(['refuse', 'skip', 'create']),
    )
    .option('--map <theirs=ours>', 'a column of the file and the field it is; repeatable', collect(asText))
    .option('--set <field=value>', 'a field with the same value in every row; repeatable', collect(asText))
    .option('--lookup <field=file>', 'a file with two columns, theirs and ours; repeatable', collect(asText))
    .option('--mapping <file>', 'a stored mapping.json')
    .option('--locale <locale>', 'notation of numbers and dates, as in es-CL')
    .option('--decimal <mark>', 'decimal mark: , or .')
    .option('--dates <order>', 'order of dates: dmy, mdy or ymd')
    .option('--encoding <name>', `encoding of a file that is not UTF-8: ${encodings.join(', ')}`)
    .option('--tax-ids <form>', 'tax ids without a hyphen are with-digit or without-digit')
    .option('--sheet <name>', 'the sheet of a workbook (default: the first visible one)')
    .option('--header-row <n>', 'the row with the names of the columns, below a title', toWholeNumber)
    .option(
      '--skip-rows <rows>',
      'rows to ignore, such as a total, separated by commas; hidden: hidden rows',
      (text) => toList(text).map((part) => (part === 'hidden' ? ('hidden' as const) : toWholeNumber(part))),
    )
    .option(
      '--date-cells <reading>',
      'real dates of a workbook that could have day and month swapped: stored or swapped',
    )
    .option('--columns <fields>', 'for updates: the only fields to send, separated by commas', toList)
    .option('--send-again', 'send the rows of --rows once more, although they are done')
    .option('--rows <rows>', 'row numbers, separated by commas', (text) => toList(text).map(toWholeNumber))
    .option('--expect-rows <n>', 'how many rows the file must have', toWholeNumber)
    .option('--expect-total <column=sum>', 'the sum of a column; repeatable', collect(asText))
    .option('--max-failures <n>', 'stop the run when more rows than this have failed', toWholeNumber)
    .addOption(rateOption())
  addServerOptions(command).action((kind: string, file: string, options: Options) =>
    act({ kind, file, options, terminal }),
  )
  addExamples(command, 'run', {
    'import retentions rows.csv --mapping mapping.json --dry-run': 'list every problem, send nothing',
    'import retentions rows.csv --mapping mapping.json --expect-rows 30 --expect-total amount=1883.50':
      'send only if the totals match',
    'import retentions rows.csv --on-invalid skip --local':
      'send the valid rows, with a Temporal server of its own',
  })
}

async function act(call: {
  kind: string
  file: string
  options: Options
  terminal: Terminal
}): Promise<void> {
  const { options, terminal } = call
  toServer(options)
  const settings = processSettings()
  const order = await toOrder(call)
  // Loaded late: Temporal's client and worker take a second to load, and usage errors are reported first.
  const { runImport } = await import('../runs/run-import.ts')
  await runImport({ settings, terminal, order })
}

async function toOrder({ kind, file, options }: Parameters<typeof act>[0]): Promise<ImportOrder> {
  const { sendAgain, rows, map = [], set = [], columns, expectTotal } = options
  if ((sendAgain === true) !== (rows !== undefined))
    throw new UsageError('--send-again and --rows go together: --send-again --rows 17,18.')
  const mapping = options.mapping && callersPath(options.mapping)
  const base = mapping === undefined ? {} : await readMapping(mapping).catch(unread)
  const lookup = (options.lookup ?? []).map(withCallersPath)
  return {
    file: callersPath(file),
    reading: [
      ...toOptions({ mapping, columns }),
      ...map.map((text): [string, string] => ['map', text]),
      ...set.map((text): [string, string] => ['set', text]),
      ...lookup.map((text): [string, string] => ['lookup', text]),
      ...toOptions(readingOf(options) as Reading),
    ],
    mapping: toMapping({ ...options, base, map, set, lookup }),
    input: {
      kind: choice('kind', importKindNames)(kind),
      columns,
      sendAgain: rows,
      dryRun: options.dryRun,
      onInvalid: options.onInvalid,
      done: options.done,
      existing: options.existing,
      canary: options.canary,
      approval: options.waitForApproval,
      expectRows: options.expectRows,
      expectTotals: expectTotal && Object.fromEntries(expectTotal.map(parseExpectedTotal)),
      maxFailures: options.maxFailures,
      requestsPerSecond: options.rate,
    },
    yes: options.yes ?? false,
    show: options.show,
    ...toServer(options),
  }
}

/** Options as a person types them: `headerRow` is `header-row`. */
const toOptions = (options: Readonly<Record<string, Reading[keyof Reading]>>) =>
  Object.entries(options).flatMap(([name, value]): [string, string][] =>
    value === undefined
      ? []
      : [[name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`), [value].flat().join(',')]],
  )

function unread(error: unknown): never {
  const { code, path } = error as NodeJS.ErrnoException
  if (code === undefined) throw error
  throw new RefusedError(`${path} cannot be read (${code}).`, {
    cause: error,
    hint: 'Name a file that exists.',
  })
}

function withCallersPath(text: string): string {
  const at = text.indexOf('=')
  return at < 1 ? text : `${text.slice(0, at)}=${callersPath(text.slice(at + 1).trim())}`
}
