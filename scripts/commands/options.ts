import { InvalidArgumentError, Option, type Command } from 'commander'
import { resolve } from 'node:path'
import { mostParallel } from '../../core/exports/plan.ts'
import { checkFilters } from '../../core/billing/resources/filters.ts'
import type { ListResource } from '../../core/billing/resources/resource.ts'
import { destinationNames, type DestinationName } from '../../core/destinations/names.ts'
import { nearestName } from '../../core/tables/nearest-name.ts'
import { UsageError } from '../terminal/failures.ts'

/**
 * Parses one of a few values; for a mistyped value, suggests the closest one.
 *
 * @throws {UsageError} the value is none of `names`
 */
export function choice<T extends string>(noun: string, names: readonly T[]): (text: string) => T {
  return (text) => {
    const known = names.find((name) => name === text)
    if (known !== undefined) return known
    const near = nearestName(text, names)
    const meant = near === undefined ? '' : ` Did you mean ${near}?`
    throw new UsageError(`There is no ${noun} ${text}.${meant} Choose from ${names.join(', ')}.`)
  }
}

/** Collects the values of an option that may be repeated. */
export const collect =
  <T>(parse: (text: string) => T) =>
  (text: string, before: readonly T[] = []): T[] => [...before, parse(text)]

export const asText = (text: string): string => text

export const toList = (text: string): string[] => text.split(',').map((part) => part.trim())

export const toWholeNumber = (text: string): number => {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new InvalidArgumentError(`Write a whole number.`)
}

export const toCount = (text: string): number => {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Write a whole number from 1.')
}

/** The same bounds as in the input. */
export const toParallel = (text: string): number => {
  const count = toCount(text)
  if (count <= mostParallel) return count
  throw new InvalidArgumentError(`Write a whole number from 1 to ${mostParallel}.`)
}

export const toNumber = (text: string): number => {
  const number = Number(text)
  if (text.trim() !== '' && Number.isFinite(number) && number >= 0) return number
  throw new InvalidArgumentError('Write a number from 0.')
}

/** Parses a rate in requests per second. */
export const toRate = (text: string): number => {
  const rate = toNumber(text)
  if (rate > 0) return rate
  throw new InvalidArgumentError('Write a number above 0.')
}

export function toFilter(text: string, filters: Record<string, string> = {}): Record<string, string> {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  if (name === undefined || value === undefined) throw new InvalidArgumentError('Write name=value.')
  return { ...filters, [name]: value }
}

/**
 * Checks the filters of a list before anything is started.
 *
 * @throws {UsageError} the list does not have the status
 * @throws {FilterError} a filter is invalid for the list
 */
export function checkListFilters(options: {
  resource: ListResource
  filters: Readonly<Record<string, string>>
}): void {
  const { name, statuses } = options.resource
  const { status } = options.filters
  if (status !== undefined && statuses !== undefined) choice(`status of ${name}`, statuses)(status)
  checkFilters(options)
}

/** Parses destinations (`csv,duckdb`): drops duplicates and keeps the order. */
export const toDestinations = (text: string): DestinationName[] => [
  ...new Set(toList(text).map(choice('destination', destinationNames))),
]

export function toMaxDeletes(text: string): number | 'all' {
  if (text === 'all') return text
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Write a whole number, or all.')
}

/** The folder where the user ran the command: npm starts commands in the package's folder. */
export const callersFolder = (): string => process.env['INIT_CWD'] ?? process.cwd()

/** Resolves a path relative to that folder. */
export const callersPath = (path: string): string => resolve(callersFolder(), path)

export interface ServerOptions {
  local?: boolean
  detach?: boolean
}

export const addServerOptions = (command: Command): Command =>
  command
    .option('--local', 'start a Temporal dev server and a worker for this command')
    .option('--detach', 'start the run and return at once')

/** @throws {UsageError} if both are given */
export function toServer({ local = false, detach = false }: ServerOptions): Required<ServerOptions> {
  if (local && detach)
    throw new UsageError(
      '--local and --detach cannot be combined: --local stops with this command. Start `connector up` and drop --local.',
    )
  return { local, detach }
}

export const rateOption = () =>
  new Option('--rate <n>', "requests per second of this run, within the worker's rate").argParser(toRate)

export const byOption = () => new Option('--by <name>', 'your name (default: the current user)')

export const schemaOption = (otherwise = 'billing; in test mode billing_test') =>
  new Option('--schema <name>', `schema in PostgreSQL (default: ${otherwise})`)

/** The options of commands that read from the service and publish. */
export interface ReadOptions extends ServerOptions {
  to: DestinationName[]
  out?: string
  rate?: number
  schema?: string
  for?: 'excel'
  exclude?: string[]
  hash?: string[]
}

export function addReadOptions(command: Command): Command {
  const toOption = new Option('--to <destinations>', `where to publish: ${destinationNames.join(', ')}`)
  command
    .addOption(toOption.default(['csv'], 'csv').argParser(toDestinations))
    .option('--out <folder>', 'another root for the published folders (see CONNECTOR_OUT_DIRS)')
    .addOption(rateOption())
    .addOption(new Option('--for <program>', 'write CSV that this program opens safely').choices(['excel']))
    .option('--exclude <columns>', 'columns to leave out, as in customers.email,customers.phone', toList)
    .option('--hash <columns>', 'columns to replace with a keyed hash, separated by commas', toList)
    .addOption(schemaOption())
  return addServerOptions(command)
}

/** Converts the options to fields of a workflow's input. */
export function toReadFields({ to, out, rate, exclude, hash, schema, for: program }: ReadOptions) {
  return {
    to,
    ...(out !== undefined && { out: callersPath(out) }),
    ...(schema !== undefined && { schema }),
    ...(rate !== undefined && { requestsPerSecond: rate }),
    ...(program === 'excel' && { forExcel: true }),
    ...(exclude !== undefined && { exclude }),
    ...(hash !== undefined && { hash }),
  }
}

const exits = {
  run: '0 done and proven · 1 failed · 2 wrong usage, or refused · 3 finished, but unproven or stopped, or with rejected, parked or missing rows',
  inspect: '0 done · 1 failed · 2 wrong usage, or refused',
  check: '0 nothing wrong · 1 something is wrong · 2 wrong settings or usage',
}

/** Adds the end of a command's help: examples with explanations, and its exit codes. */
export function addExamples(
  command: Command,
  kind: keyof typeof exits,
  examples: Readonly<Record<string, string>>,
): Command {
  const lines = Object.entries(examples).flatMap(([example, meaning]) => [
    `  # ${meaning}`,
    `  connector ${example}`,
  ])
  return command.addHelpText('after', `\nExamples:\n${lines.join('\n')}\n\nExit codes: ${exits[kind]}`)
}
