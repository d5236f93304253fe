import { connector, program } from '../../core/runs/view/shell.ts'
import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import { realpath } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { resolve } from 'node:path'
import { z } from 'zod'
import {
  choicesOf,
  defaultOf,
  fieldsOf,
  type Form,
  type InputField,
  parseDuration,
} from '../../core/runs/inputs.ts'
import { orMissing } from '../../core/storage/system-errors.ts'
import { nearestName } from '../../core/tables/nearest-name.ts'
import { UsageError } from '../terminal/failures.ts'
import { callersFolder } from '../terminal/terminal.ts'
import { type Places, readPlaces, readSettings, type Settings } from '../../worker/settings/settings.ts'

/**
 * Adds the options of an input's fields. The action gets their values under the names of the fields, by `inputOf`. What has to
 * be there is checked before the action: Commander itself would name it before an option that does not exist.
 */
export function addInputOptions(command: Command, schema: z.ZodObject): Command {
  for (const field of fieldsOf(schema)) {
    if (field.flag === undefined) continue
    const option = new Option(field.flag, helpOf(field))
    const choices = choicesOf(field)
    if (choices !== undefined) option.choices(choices)
    option.attributeName = () => field.name
    if (!option.isBoolean()) option.argParser((text, before) => readText(field, text, before))
    command.addOption(option)
    if (field.schema.safeParse(undefined).success) continue
    command.hook('preAction', () => {
      if (command.getOptionValue(field.name) === undefined)
        throw new UsageError(`required option '${option.flags}' not specified; see --help.`)
    })
  }
  return command
}

/** Adds `--input`, which sets any field of the input, and so those that have no option of their own. */
export function addOtherFields(command: Command, schema: z.ZodObject): Command {
  const fields = fieldsOf(schema)
  const find = choice(
    'field of the input',
    fields.map(({ name }) => name),
  )
  const read = (text: string, before: Readonly<Record<string, unknown>> = {}) => {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
    if (name === undefined || value === undefined) throw new InvalidArgumentError('Write field=value.')
    const known = find(name)
    const field = fields.find((one) => one.name === known)
    return field === undefined ? before : { ...before, [known]: readText(field, value, before[known]) }
  }
  return command
    .option(
      '--input <field=value>',
      'another field of the input, as docs/commands.md lists them; repeatable',
      read,
    )
    .exitOverride((error) => {
      const [, option] = /unknown option '--([^'=]+)(?:=.*)?'$/s.exec(error.message) ?? []
      const field = option === undefined ? undefined : fieldMeant(option, fields)
      throw field === undefined
        ? error
        : new UsageError(`unknown option '--${option}'; did you mean --input ${field.name}=<value>?`)
    })
}

/** The field without an option of its own that a mistaken option means: by its name, or by a word that only its help has. */
function fieldMeant(option: string, fields: readonly InputField[]): InputField | undefined {
  const name = option.replaceAll('-', '').toLowerCase()
  const others = fields.filter(({ flag }) => flag === undefined)
  const explained = others.filter(({ help }) => help.split(/\W+/).includes(option))
  return (
    others.find((field) => field.name.toLowerCase() === name) ??
    (explained.length === 1 ? explained[0] : undefined)
  )
}

function helpOf(field: InputField): string {
  const otherwise = field.form.type === 'boolean' ? undefined : defaultOf(field)
  return `${field.help}${otherwise === undefined ? '' : ` (default: ${otherwise})`}`
}

/** Adds an argument that is a field of the input, as in `[resources...]`. */
export function addInputArgument(command: Command, schema: z.ZodObject, flag: string): Command {
  const field = fieldsOf(schema).find(({ name }) => flag.includes(name))
  if (field === undefined) throw new RangeError(`the input has no field ${flag}`)
  const argument = new Argument(flag, helpOf(field))
  const choices = choicesOf(field)
  if (choices !== undefined) argument.choices(choices)
  return command.addArgument(argument.argParser((text, before) => readText(field, text, before)))
}

/** The input that the options of a command stand for, without what is not a field of it. */
export function inputOf<S extends z.ZodObject>(schema: S, options: object): z.input<S> {
  const { input } = options as { input?: object }
  const typed = Object.entries({ ...input, ...options })
  const known = typed.filter(([name]) => Object.hasOwn(schema.shape, name))
  return Object.fromEntries(known) as z.input<S>
}

/**
 * The value of a field from the text of its option; `before` is its value from the same option, typed earlier.
 *
 * @throws {InvalidArgumentError} a sentence that says what to write instead
 */
function readText(field: InputField, text: string, before?: unknown): unknown {
  const value = toValue(field.form, text, before)
  const parsed = field.schema.safeParse(value)
  if (parsed.success) return value
  const messages = [...new Set(parsed.error.issues.map(({ message }) => message))].join('; ')
  throw new InvalidArgumentError(
    expectationOf(field, text) ?? `${messages.replace(/^./, (first) => first.toUpperCase())}.`,
  )
}

function toValue(form: Form, text: string, before: unknown): unknown {
  const { type, items, anyOf } = form
  if (type === 'array') {
    const values = text.split(',').map((part) => toValue(items ?? {}, part.trim(), undefined))
    return [...((before as unknown[] | undefined) ?? []), ...values]
  }
  if (type === 'object') {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
    return name === undefined ? text : { ...(before as object | undefined), [name]: value }
  }
  if (type === 'boolean' && /^(true|false)$/.test(text)) return text === 'true'
  const isNumber = [form, ...(anyOf ?? [])].some((one) => one.type === 'number' || one.type === 'integer')
  return isNumber && /^\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text
}

/** What to write, where the schema says it; undefined if the schema's own message does. */
function expectationOf(field: InputField, text: string): string | undefined {
  const choices = choicesOf(field)
  if (choices !== undefined) {
    const wrong = text.split(',').map((part) => part.trim())
    const near = wrong.flatMap((part) => (choices.includes(part) ? [] : (nearestName(part, choices) ?? [])))
    const meant = near.length === 0 ? '' : `Did you mean ${near.join(', ')}? `
    return `${meant}Choose from ${choices.join(', ')}.`
  }
  const { type, items = {}, anyOf = items.anyOf } = field.form
  if (type === 'boolean') return 'Write true or false.'
  if (type === 'object') return `Write ${/<(.+)>/.exec(field.flag ?? '')?.[1] ?? 'name=value'}.`
  if (type === 'array' && items.type === 'string') return 'Write values separated by commas.'
  const number = [field.form, items, ...(anyOf ?? [])].find(
    (one) => one.type === 'number' || one.type === 'integer',
  )
  const words = (anyOf ?? []).flatMap((one) => (typeof one.const === 'string' ? [one.const] : []))
  const isOpen = anyOf?.some((one) => one.type === 'string' && one.const === undefined)
  if (number === undefined || isOpen) return undefined
  const several = type === 'array' ? ['several, separated by commas'] : []
  return `Write ${[rangeOf(number), ...words, ...several].join(', or ')}.`
}

function rangeOf({ type, minimum, maximum, exclusiveMinimum }: Form): string {
  const noun = type === 'integer' ? 'a whole number' : 'a number'
  if (exclusiveMinimum !== undefined) return `${noun} above ${exclusiveMinimum}`
  const isBound = maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER
  return `${noun}${minimum === undefined ? '' : ` from ${minimum}`}${isBound ? ` to ${maximum}` : ''}`
}

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

/** An age: `90s`, `15m`, `26h`, `30d`. A bare 30 is refused: it may be meant as days. */
export const ageInput = z
  .string()
  .refine((text) => toAge(text) !== undefined, 'write a duration such as 90s, 15m, 26h or 2d')

/** Milliseconds; undefined if the text is not an age. */
export const toAge = (text: string): number | undefined =>
  /[a-z]$/.test(text) ? parseDuration(text) : undefined

/** Resolves a path relative to that folder. */
export const callersPath = (path: string): string => resolve(callersFolder(), path)

/** The folder of an export. `latest` may move to another one meanwhile, so a link is followed once. */
export async function exportFolder(path: string): Promise<string> {
  const folder = callersPath(path)
  return (await orMissing(realpath(folder))) ?? folder
}

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
      `--local and --detach cannot be combined: --local stops with this command. Start \`${connector`up`}\` and drop --local.`,
    )
  return { local, detach }
}

/** Loaded late: Temporal's client and worker take a second to load, and usage errors are reported first. */
export const loadJobs = () => import('../runs/jobs.ts')

/** The options of a command that records a person's decision. */
const decisionInput = z.object({
  why: z.string().meta({ flag: '--why <reason>', help: 'your reason; it is kept on record' }),
  by: z.string().optional().meta({ flag: '--by <name>', help: 'your name', otherwise: 'the current user' }),
})
export type DecisionOptions = z.output<typeof decisionInput>

export const addDecision = (command: Command): Command => addInputOptions(command, decisionInput)

export const decisionOf = ({ why, by = userInfo().username }: DecisionOptions) => ({ by, why })

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
    `  ${program} ${example}`,
  ])
  return command.addHelpText('after', `\nExamples:\n${lines.join('\n')}\n\nExit codes: ${exits[kind]}`)
}

/** The settings of this process: the environment and `.env`, checked. */
export const processSettings = (): Settings => readSettings({ env: process.env, cwd: process.cwd() })

/** The same of a command that needs neither the service nor a worker. */
export const processPlaces = (): Places => readPlaces({ env: process.env, cwd: process.cwd() })
