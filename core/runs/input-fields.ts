import { z } from 'zod'
import { connectorCommand } from './view/shell.ts'

/**
 * A field of a run's input. Its schema and the meta data of the schema are its only description: the options of the
 * command line, their errors, the tables of the docs and the commands in reports are made from it.
 */
export interface InputField {
  name: string
  schema: z.ZodType
  help: string
  /** The option that sets it, as in `--rate <n>`. Absent: `--input` does, a schedule, or the Temporal UI. */
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

/** An option as typed: `['rate', '5']`, `['dry-run']`. */
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
