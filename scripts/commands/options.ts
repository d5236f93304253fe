import { InvalidArgumentError, Option, type Command } from 'commander'
import { resolve } from 'node:path'
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

export const toList = (text: string): string[] => text.split(',').map((part) => part.trim())

export const toWholeNumber = (text: string): number => {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new InvalidArgumentError(`Write a whole number.`)
}

export const toCount = (text: string): number => {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Write a whole number from 1.')
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

/** Parses destinations (`csv,duckdb`): drops duplicates and keeps the order. */
export const toDestinations = (text: string): DestinationName[] => [
  ...new Set(toList(text).map(choice('destination', destinationNames))),
]

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
