import { Option, type Command } from 'commander'
import { resolve } from 'node:path'
import { manifestSchema } from '../../core/destinations/manifest.ts'
import { UsageError } from '../terminal/failures.ts'

const destinations = manifestSchema.shape.destination.options
export type Destination = (typeof destinations)[number]

/** `csv,duckdb`: each once, in the order given. */
export function toDestinations(text: string): Destination[] {
  const named = text.split(',').map((part) => {
    const name = part.trim()
    const known = destinations.find((one) => one === name)
    if (known !== undefined) return known
    throw new UsageError(`There is no destination ${name}; choose from ${destinations.join(', ')}.`)
  })
  return [...new Set(named)]
}

export function toMaxDeletes(text: string): number | 'all' {
  if (text === 'all') return text
  if (!/^\d{1,9}$/.test(text))
    throw new UsageError(`--max-deletes ${text} is neither a whole number nor all.`)
  return Number(text)
}

export function refuseDetached({ local, detach }: { local: boolean; detach: boolean }): void {
  if (local && detach)
    throw new UsageError(
      '--local ends with this command, and --detach leaves the run to others; start `connector up` and leave --local away.',
    )
}

/** What every command takes that reads from the service and publishes. */
export interface ReadOptions {
  to: Destination[]
  out?: string
  rate?: number
  schema?: string
  for?: 'excel'
  exclude?: string[]
  hash?: string[]
  local?: true
  detach?: true
}

const commaList = (text: string) => text.split(',').map((part) => part.trim())

export function addReadOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--to <destinations>', 'where to publish, with commas')
        .default(['csv'])
        .argParser(toDestinations),
    )
    .option('--out <folder>', 'another root for the published folders (see CONNECTOR_OUT_DIRS)')
    .option('--rate <n>', 'requests a second of this run, within the rate of the worker', toRate)
    .addOption(
      new Option('--for <program>', 'cells as the program takes them without harm').choices(['excel']),
    )
    .option('--exclude <columns>', 'columns to leave out (customers.email), with commas', commaList)
    .option('--hash <columns>', 'columns to replace by a keyed hash, with commas', commaList)
    .option('--schema <name>', 'the schema in PostgreSQL (default: billing, in test mode billing_test)')
    .option('--local', 'with a Temporal dev server and a worker of its own')
    .option('--detach', 'start the run and return')
}

/** As the fields of a workflow's input. Refuses what contradicts itself. */
export function toReadFields(options: ReadOptions) {
  const { to, out, rate, exclude, hash, schema, local = false, detach = false } = options
  refuseDetached({ local, detach })
  return {
    to,
    ...(out !== undefined && { out: callersPath(out) }),
    ...(schema !== undefined && { schema }),
    ...(rate !== undefined && { requestsPerSecond: rate }),
    ...(options.for === 'excel' && { forExcel: true }),
    ...(exclude !== undefined && { exclude }),
    ...(hash !== undefined && { hash }),
  }
}

/** A path as the caller means it. */
export const callersPath = (path: string): string => resolve(process.env['INIT_CWD'] ?? process.cwd(), path)

function toRate(text: string): number {
  const rate = Number(text)
  if (!(rate > 0)) throw new UsageError(`--rate ${text} is not a number above 0.`)
  return rate
}
