import { z } from 'zod'
import { connectorCommand } from './view/shell.ts'
import { InvalidInput } from './errors.ts'

/**
 * A field of a run's input. Its schema and the meta data of the schema are its only description: the options of the
 * command line, their errors, the tables of the docs and the commands in reports are made from it.
 */
export interface InputField {
  name: string
  schema: z.ZodType
  help: string
  /** The option that sets it, as in `--mode <mode>`. Absent: `--input` does, a schedule, or the Temporal UI. */
  flag?: string
  /** What holds without it, if that is not a value: `BILLING_CONCURRENCY`. */
  otherwise?: string
  form: Form
}

/** What JSON schema says of the field. */
export interface Form {
  type?: string
  default?: unknown
  enum?: readonly string[]
  const?: unknown
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  anyOf?: readonly Form[]
  items?: Form
}

/** The fields of an input that are described; others, such as `identity`, are not for people. */
export function fieldsOf({ shape }: z.ZodObject): InputField[] {
  const schema = z.object(shape)
  const { properties = {} } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  return Object.entries(properties).flatMap(([name, form]): InputField[] => {
    const { help, flag, otherwise } = form as { help?: string; flag?: string; otherwise?: string }
    const field = schema.shape[name]
    if (help === undefined || field === undefined) return []
    return [
      {
        name,
        schema: field,
        help,
        form: form as Form,
        ...(flag && { flag }),
        ...(otherwise && { otherwise }),
      },
    ]
  })
}

/** The values that a field takes, if they are a few names. */
export const choicesOf = ({ form }: InputField): readonly string[] | undefined =>
  form.enum ?? form.items?.enum

/** What holds if the field is absent, for people. */
export function defaultOf({ form, otherwise }: InputField): string | undefined {
  if (otherwise !== undefined) return otherwise
  const { default: value } = form
  if (value === undefined || value === false || (Array.isArray(value) && value.length === 0)) return undefined
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** An option as typed: `['mode', 'full']`, `['dry-run']`. */
export type TypedOption = [option: string, ...value: string[]]

/** The options that stand for this input, by name. Fields at their default are left out. */
export function typedOptions(schema: z.ZodObject, input: Readonly<Record<string, unknown>>): TypedOption[] {
  return fieldsOf(schema).flatMap(({ name, flag, form }): TypedOption[] => {
    const value = input[name]
    const [, option = ''] = /^--([\w-]+)/.exec(flag ?? '') ?? []
    const isDefault = JSON.stringify(value) === JSON.stringify(form.default)
    if (value === undefined || value === null || value === false || isDefault) return []
    const values =
      typeof value !== 'object'
        ? [typeof value === 'string' ? value : JSON.stringify(value)]
        : Array.isArray(value)
          ? [value.join(',')].filter(Boolean)
          : Object.entries(value).map(([key, one]) => `${key}=${one}`)
    if (flag === undefined) return values.map((text) => ['input', `${name}=${text}`])
    return value === true ? [[option]] : values.map((text) => [option, text])
  })
}

/** The command that starts a run with this input. */
export function inputCommand(
  words: readonly string[],
  schema: z.ZodObject,
  input: Readonly<Record<string, unknown>>,
): string {
  const options = typedOptions(schema, input).flatMap(([option, ...value]) => [`--${option}`, ...value])
  return connectorCommand([...words, ...options])
}

/** The option alone where its field has the same name in camel case: `--header-row <n>` of `headerRow`. */
function namesOf(name: string, flag: string | undefined): string {
  if (flag === undefined) return `\`${name}\``
  const kebab = name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  return flag.split(' ')[0] === `--${kebab}` ? `\`${flag}\`` : `\`${flag}\` (\`${name}\`)`
}

/** The fields of an input as a list of the docs. */
export function describeFields(schema: z.ZodObject): string {
  const lines = fieldsOf(schema).map((field) => {
    const { name, help, flag, otherwise = defaultOf(field) } = field
    const values = choicesOf(field)?.map((one) => `\`${one}\``)
    const meaning = values === undefined ? help : `${help}: ${values.join(', ')}`
    return `- ${namesOf(name, flag)}: ${meaning}${otherwise === undefined ? '' : ` (default: ${otherwise})`}`
  })
  return lines.join('\n')
}

/** Longer waits are typos, and their ends would not be valid dates. */
const longestMs = 366 * 24 * 3_600_000

/** A duration in an input: `"15m"`, or a number of seconds. Parsed to seconds, so that a plan can be an input again. */
export const durationInput = z
  .union([z.number().min(0), z.string()], { error: 'is not a duration such as "15m", "2h" or 90 (seconds)' })
  .transform((input, context) => {
    const ms = parseDuration(String(input))
    if (ms !== undefined && ms <= longestMs) return ms / 1_000
    const problem = ms === undefined ? 'is not a duration' : 'is longer than 366 days; give a duration'
    const message = `${JSON.stringify(input)} ${problem} such as "90s", "15m", "2h" or "1d"`
    context.addIssue({ code: 'custom', message })
    return z.NEVER
  })

export const rateInput = z
  .number()
  .positive()
  .optional()
  .meta({ help: "requests per second of this run, within the worker's rate" })

/** Only a limit of a run in progress has an option for it. */
export const concurrencyInput = z
  .int()
  .min(1)
  .max(100)
  .optional()
  .meta({ help: 'changes in flight at once', otherwise: 'BILLING_CONCURRENCY' })

export const maxFailureShareInput = z.number().min(0).max(1).optional().meta({
  help: 'the share of failures among the last outcomes that opens a circuit breaker',
  otherwise: '0.5',
})

export const dryRunInput = z
  .boolean()
  .default(false)
  .meta({ flag: '--dry-run', help: 'read, check and report; change nothing' })

export const attendedInput = z.boolean().default(false).meta({
  help: 'an operator is present: a breaker that has given up waits for them instead of ending the run',
})

/** Two hours cover a lunch break, and little changes in the meantime. */
export const approvalWaitInput = durationInput
  .prefault('2h')
  .meta({ help: 'how long the run waits for an approval' })

export const verifyAfterInput = durationInput.optional().meta({
  help: 'the wait before a lookup of what was sent; for what got no answer, at least BILLING_SETTLE_SECONDS',
  otherwise: 'BILLING_SETTLE_SECONDS',
})

export const breakerWaitsInput = z
  .array(durationInput)
  .min(1)
  .optional()
  .meta({ help: 'how long an open breaker waits before each of its trials', otherwise: '1m, 2m, 4m' })

/**
 * Parses the input of a run. An invalid one is rejected in one sentence with all problems and the accepted
 * fields.
 *
 * @throws {InvalidInput}
 */
export function parseInput<S extends z.ZodObject>(options: {
  schema: S
  input: unknown
  /** As in `an export`. */
  taker: string
}): z.output<S> {
  const { schema, input, taker } = options
  const parsed = schema.safeParse(input, { error: wrongType })
  if (parsed.success) return parsed.data
  const fields = Object.keys(schema.shape)
  const allowed =
    fields.length === 1 ? `Its only field is ${fields[0]}.` : `Its fields are ${fields.join(', ')}.`
  throw new InvalidInput(`The input is not one ${taker} takes: ${toProblems(parsed.error)}. ${allowed}`)
}

/**
 * The most problems listed: there may be a hundred thousand, and the server limits the size of a failure.
 */
const mostProblems = 20
const longestPlace = 100
const longestMessage = 300

const typeWords: Readonly<Record<string, string>> = {
  array: 'a list',
  object: 'an object with fields',
  record: 'an object with fields',
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
}

/** Says of a value of another type what the field takes, and which fields there are not; the rest is left to Zod. */
export function wrongType({ code, input, ...issue }: z.core.$ZodRawIssue): string | undefined {
  if (code === 'unrecognized_keys')
    return `has no field ${(issue['keys'] as string[]).map((key) => JSON.stringify(key)).join(', ')}`
  const takes = code === 'invalid_type' ? typeWords[String(issue['expected'])] : undefined
  if (takes === undefined || input === undefined) return undefined
  const given = input === null ? 'null' : typeWords[Array.isArray(input) ? 'array' : typeof input]
  return `takes ${takes}${given === undefined || given === takes ? '' : `, not ${given}`}`
}

/** Zod's issues on one line; `root` names the value itself. */
export function toProblems({ issues }: z.ZodError, root = 'input'): string {
  const shown = issues
    .slice(0, mostProblems)
    .map(
      ({ path, message }) => `${cut(path.join('.') || root, longestPlace)}: ${cut(message, longestMessage)}`,
    )
  const more = issues.length - shown.length
  return [...shown, ...(more > 0 ? [`and ${more.toLocaleString('en')} more`] : [])].join('; ')
}

const cut = (text: string, most: number) => (text.length > most ? `${text.slice(0, most)}...` : text)

/** The milliseconds of a duration of an input. */
export const toMs = (seconds: number): number => Math.round(seconds * 1_000)

const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/**
 * Parses a duration to milliseconds: `90s`, `15m`, `2h`, `3d`; a bare number is seconds. Undefined if it is
 * not a duration.
 */
export function parseDuration(text: string): number | undefined {
  const [, number, unit = 's'] = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?$/.exec(text.trim()) ?? []
  return number === undefined ? undefined : Number(number) * unitMs[unit as keyof typeof unitMs]
}

/** The workspace the caller expects. Rejected if the worker serves a different one. */
export const identityInput = z
  .strictObject({
    workspace: z.string(),
    baseUrl: z.string(),
    mode: z.enum(['live', 'test']),
    store: z.string(),
  })
  .optional()
