import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import type { z } from 'zod'
import { choicesOf, defaultOf, fieldsOf, type Form, type InputField } from '../../core/runs/input-fields.ts'
import { nearestName } from '../../core/tables/nearest-name.ts'

/** Adds the options of an input's fields. The action gets their values under the names of the fields. */
export function addInputOptions(command: Command, schema: z.ZodObject): Command {
  for (const field of fieldsOf(schema)) {
    if (field.flag === undefined) continue
    const option = new Option(field.flag, helpOf(field))
    const choices = choicesOf(field)
    if (choices !== undefined) option.choices(choices)
    option.attributeName = () => field.name
    if (!option.isBoolean()) option.argParser((text, before) => readText(field, text, before))
    command.addOption(option)
  }
  return command
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
  const known = Object.entries(options).filter(([name]) => Object.hasOwn(schema.shape, name))
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
  if (type === 'object') return `Write ${/<(.+)>/.exec(field.flag ?? '')?.[1] ?? 'name=value'}.`
  if (type === 'array' && items.type === 'string') return 'Write values separated by commas.'
  const number = [field.form, items, ...(anyOf ?? [])].find(
    (one) => one.type === 'number' || one.type === 'integer',
  )
  const words = (anyOf ?? []).flatMap((one) => (typeof one.const === 'string' ? [one.const] : []))
  const isOpen = anyOf?.some((one) => one.type === 'string' && one.const === undefined)
  if (number === undefined || isOpen) return undefined
  return `Write ${[rangeOf(number), ...words].join(', or ')}.`
}

function rangeOf({ type, minimum, maximum, exclusiveMinimum }: Form): string {
  const noun = type === 'integer' ? 'a whole number' : 'a number'
  if (exclusiveMinimum !== undefined) return `${noun} above ${exclusiveMinimum}`
  const isBound = maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER
  return `${noun}${minimum === undefined ? '' : ` from ${minimum}`}${isBound ? ` to ${maximum}` : ''}`
}
