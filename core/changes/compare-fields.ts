import type { z } from 'zod'
import { isRecord, numberText, toDecimal } from '../billing/lossless-json.ts'
import { type FieldMeta, fieldOf } from '../billing/resources/fields.ts'

/** A field whose stored value differs from the one that was sent. */
export interface Difference {
  /** `lines.2.amount`: places in a list count from 1. */
  field: string
  sent: string
  stored: string
}

export const describeDifference = ({ field, sent, stored }: Difference): string =>
  `${field} was sent as ${sent} and is stored as ${stored}`

/**
 * Compares what was sent with what is stored: only the fields that were sent; numbers as decimals, dates as dates,
 * texts exactly. Fields that the service adds are ignored.
 */
export function differencesOf(options: {
  schema: z.ZodObject
  sent: unknown
  stored: unknown
}): Difference[] {
  return inObject({ ...options, path: '' })
}

interface Compared {
  sent: unknown
  stored: unknown
  path: string
}

function inObject({ schema, sent, stored, path }: Compared & { schema: z.ZodObject }): Difference[] {
  if (!isRecord(sent) || !isRecord(stored)) return inJson({ sent, stored, path })
  return Object.entries(sent).flatMap(([name, value]) => {
    const meta = fieldOf(schema, name)
    const compared = { sent: value, stored: stored[name], path: path === '' ? name : `${path}.${name}` }
    return meta === undefined ? inJson(compared) : inField({ ...compared, meta })
  })
}

function inField({ meta, ...compared }: Compared & { meta: FieldMeta }): Difference[] {
  const { sent, stored, path } = compared
  if (sent === null || sent === undefined)
    return stored === null || stored === undefined ? [] : [difference(compared)]
  if (meta.kind === 'object') return inObject({ ...compared, schema: meta.fields })
  if (meta.kind === 'json') return inJson(compared)
  if (meta.kind === 'list') {
    if (!Array.isArray(sent) || !Array.isArray(stored) || sent.length !== stored.length)
      return [difference(compared)]
    return sent.flatMap((item: unknown, index) =>
      inObject({
        schema: meta.fields,
        sent: item,
        stored: stored[index] as unknown,
        path: `${path}.${index + 1}`,
      }),
    )
  }
  return sameScalar({ ...compared, kind: meta.kind }) ? [] : [difference(compared)]
}

function sameScalar({ kind, sent, stored }: Compared & { kind: FieldMeta['kind'] }): boolean {
  if (stored === null || stored === undefined) return false
  const [sentText, storedText] = [textOf(sent), textOf(stored)]
  if (sentText === storedText) return true
  if (kind === 'decimal' || kind === 'integer') return sameDecimal(sentText, storedText)
  // The service may return a date as its midnight.
  if (kind === 'date') return storedText.startsWith(`${sentText}T00:00:00`)
  if (kind === 'timestamp') return Date.parse(sentText) === Date.parse(storedText)
  return false
}

function inJson(compared: Compared): Difference[] {
  const { sent, stored } = compared
  if (isRecord(sent) && isRecord(stored))
    return Object.entries(sent).flatMap(([name, value]) =>
      inJson({ sent: value, stored: stored[name], path: `${compared.path}.${name}` }),
    )
  if (isNumber(sent) && isNumber(stored))
    return sameDecimal(numberText(sent), numberText(stored)) ? [] : [difference(compared)]
  return textOf(sent) === textOf(stored) ? [] : [difference(compared)]
}

const difference = ({ sent, stored, path }: Compared): Difference => ({
  field: path,
  sent: textOf(sent),
  stored: textOf(stored),
})

const isNumber = (value: unknown) => typeof value === 'number' || JSON.isRawJSON(value)

/** The value as text: numbers with all their digits, null and undefined as ''. */
export function textOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'string') return value
  return JSON.stringify(value)
}

/** The same text for equal numbers, regardless of zeros; text that is not a number is returned unchanged. */
export function canonicalDecimal(text: string): string {
  const decimal = toDecimal(text)
  if (decimal === undefined) return text
  const { s: sign, e: exponent, c: digits } = decimal
  if (digits[0] === 0) return '0e0'
  return `${sign < 0 ? '-' : ''}${digits.join('')}e${exponent - digits.length + 1}`
}

/** Whether two texts are the same number: `1.50` and `1.5e0` are. */
export function sameDecimal(left: string, right: string): boolean {
  const [a, b] = [toDecimal(left), toDecimal(right)]
  return a === undefined || b === undefined ? left === right : a.eq(b)
}

/** Negative if the first is less. Text that is not a number is less than any number. */
export function compareDecimals(left: string, right: string): number {
  const [a, b] = [toDecimal(left), toDecimal(right)]
  return a === undefined || b === undefined ? Number(a !== undefined) - Number(b !== undefined) : a.cmp(b)
}
