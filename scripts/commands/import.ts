import { Option, type Command } from 'commander'
import { resolve } from 'node:path'
import { parseExpectedTotal } from '../../core/imports/expectations.ts'
import { type ImportKindName, importKindNames } from '../../core/imports/kinds.ts'
import { readMapping, toMapping } from '../../core/imports/mapping/mapping.ts'
import type { ImportOrder } from '../runs/import-request.ts'
import { processSettings } from '../session/settings.ts'
import { RefusedError, UsageError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'

interface Options {
  dryRun?: true
  canary?: number
  waitForApproval?: true
  yes?: true
  onInvalid?: 'stop' | 'skip'
  done?: 'refuse' | 'skip'
  existing?: 'refuse' | 'skip' | 'create'
  lines?: string
  map: string[]
  set: string[]
  lookup: string[]
  mapping?: string
  locale?: string
  decimal?: string
  dates?: string
  columns?: string[]
  sendAgain?: true
  rows?: number[]
  expectRows?: number
  expectTotal: string[]
  maxFailures?: number
  rate?: number
  local?: true
  detach?: true
}

export function configure(command: Command, terminal: Terminal): void {
  command
    .argument('<kind>', importKindNames.join(', '))
    .argument('<file>', 'a CSV file')
    .option('--dry-run', 'check everything and show the control totals; nothing is sent')
    .option('--canary <n>', 'how many unlike rows go first (default 3, for more than 20 rows)', toWhole)
    .option('--wait-for-approval', 'send nothing before somebody approves (connector approve)')
    .option('--yes', 'do not ask on a terminal')
    .addOption(new Option('--on-invalid <what>', 'of a file with invalid rows').choices(['stop', 'skip']))
    .addOption(new Option('--done <what>', 'with rows that an earlier run did').choices(['refuse', 'skip']))
    .addOption(
      new Option('--existing <what>', 'with retentions that the service has already').choices([
        'refuse',
        'skip',
        'create',
      ]),
    )
    .option('--lines <file>', 'the lines of the records, in a file of their own')
    .option('--map <theirs=ours>', 'a column of the file and our field; may be given again', addText, [])
    .option('--set <field=value>', 'a field that is the same in every row; may be given again', addText, [])
    .option(
      '--lookup <field=file>',
      'a file of two columns, theirs and ours; may be given again',
      addText,
      [],
    )
    .option('--mapping <file>', 'a stored mapping.json')
    .option('--locale <locale>', 'how numbers and dates are written, as es-CL')
    .option('--decimal <mark>', 'the decimal mark, , or .')
    .option('--dates <order>', 'the order of dates: dmy, mdy or ymd')
    .option('--columns <fields>', 'of an update: the only fields to send, with commas', toList)
    .option('--send-again', 'send the rows named by --rows once more, although they are done')
    .option('--rows <rows>', 'rows, with commas', toRows)
    .option('--expect-rows <n>', 'how many rows the file must have', toWhole)
    .option('--expect-total <column=sum>', 'what a column must add up to; may be given again', addText, [])
    .option('--max-failures <n>', 'end the run when more rows than this have failed', toWhole)
    .option('--rate <n>', 'requests a second of this run, within the rate of the worker', toRate)
    .option('--local', 'with a Temporal dev server and a worker of its own')
    .option('--detach', 'start the run and return')
    .action((kind: string, file: string, options: Options) => act({ kind, file, options, terminal }))
}

async function act(call: {
  kind: string
  file: string
  options: Options
  terminal: Terminal
}): Promise<void> {
  const { options, terminal } = call
  if (options.local === true && options.detach === true)
    throw new UsageError(
      '--local ends with this command, and --detach leaves the run to others; start `connector up` and leave --local away.',
    )
  const settings = processSettings()
  const order = await toOrder(call)
  // Temporal's client and worker take a second to load: wrong usage is told before.
  const { runImport } = await import('../runs/run-import.ts')
  await runImport({ settings, terminal, order })
}

/** A path as the caller means it. */
const callers = (path: string) => resolve(process.env['INIT_CWD'] ?? process.cwd(), path)

async function toOrder({ kind, file, options }: Parameters<typeof act>[0]): Promise<ImportOrder> {
  const { sendAgain, rows, map, set, lookup, locale, decimal, dates, expectTotal } = options
  if ((sendAgain === true) !== (rows !== undefined))
    throw new UsageError('--send-again and --rows go together: --send-again --rows 17,18.')
  const base = options.mapping === undefined ? {} : await readMapping(callers(options.mapping)).catch(unread)
  const said = {
    ...(locale !== undefined && { locale }),
    ...(decimal !== undefined && { decimal }),
    ...(dates !== undefined && { dates }),
  }
  const mapping = toMapping({ base, map, set, lookup: lookup.map(withCallersPath), ...said })
  return {
    kind: toKind(kind),
    file: callers(file),
    ...(options.lines !== undefined && { lines: callers(options.lines) }),
    mapping,
    ...(options.columns !== undefined && { columns: options.columns }),
    dryRun: options.dryRun ?? false,
    yes: options.yes ?? false,
    waitForApproval: options.waitForApproval ?? false,
    onInvalid: options.onInvalid ?? 'stop',
    done: options.done ?? 'refuse',
    existing: options.existing ?? 'refuse',
    sendAgain: rows ?? [],
    expect: {
      ...(options.expectRows !== undefined && { rows: options.expectRows }),
      ...(expectTotal.length > 0 && { totals: Object.fromEntries(expectTotal.map(parseExpectedTotal)) }),
    },
    ...(options.canary !== undefined && { canary: options.canary }),
    ...(options.maxFailures !== undefined && { maxFailures: options.maxFailures }),
    ...(options.rate !== undefined && { requestsPerSecond: options.rate }),
    local: options.local ?? false,
    detach: options.detach ?? false,
  }
}

function unread(error: unknown): never {
  const { code, path } = error as NodeJS.ErrnoException
  if (code === undefined) throw error
  throw new RefusedError(`${path} can't be read (${code}).`, {
    cause: error,
    hint: 'Name a file that is there.',
  })
}

function withCallersPath(text: string): string {
  const at = text.indexOf('=')
  return at < 1 ? text : `${text.slice(0, at)}=${callers(text.slice(at + 1).trim())}`
}

function toKind(name: string): ImportKindName {
  const known = importKindNames.find((one) => one === name)
  if (known !== undefined) return known
  throw new UsageError(`There is no kind ${name}; choose from ${importKindNames.join(', ')}.`)
}

const addText = (text: string, before: readonly string[]) => [...before, text]
const toList = (text: string) => text.split(',').map((part) => part.trim())

function toWhole(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new UsageError(`${text} is not a whole number.`)
}

const toRows = (text: string) => toList(text).map(toWhole)

function toRate(text: string): number {
  const rate = Number(text)
  if (rate > 0) return rate
  throw new UsageError(`--rate ${text} is not a number above 0.`)
}
