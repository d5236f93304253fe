import type { FieldMeta } from '../../billing/resources/fields.ts'
import { compareDecimals } from '../../changes/decimals.ts'
import { nearestName } from '../../tables/nearest-name.ts'
import type { Fault } from '../problems.ts'
import { invisibleFault } from './invisible.ts'

export type CellReading = { value: unknown } | { fault: Fault }

/** Parses a number with every digit, as `parseLossless` does. */
export function toJsonNumber(digits: string): unknown {
  const number = Number(digits)
  return String(number) === digits ? number : JSON.rawJSON(digits)
}

/** The longest possible address. Checking longer text takes quadratic time. */
const longestEmail = 320
const email = /^[^\s@,;<>()"]+@[^\s@,;<>()".]+(\.[^\s@,;<>()".]+)+$/

/** The field rule that a value breaks. `text`: the value as text, or the digits of a number. */
export function faultOf(text: string, meta: FieldMeta): Fault | undefined {
  if (meta.values !== undefined && !meta.values.includes(text))
    return {
      rule: 'value',
      message: `is not one of ${meta.values.join(', ')}`,
      fix: nearestName(text, meta.values),
    }
  // The service counts characters; there are at least as many UTF-16 units.
  if (meta.maxLength !== undefined && text.length > meta.maxLength) {
    const length = Array.from(text).length
    if (length > meta.maxLength)
      return { rule: 'length', message: `has ${length} characters; the limit is ${meta.maxLength}` }
  }
  if (meta.format === 'email' && !email.test(text))
    return { rule: 'email', message: 'is not a valid email address', fix: fixEmail(text) }
  if (meta.min !== undefined && compareDecimals(text, meta.min) < 0)
    return { rule: 'min', message: `is less than ${meta.min}` }
  return undefined
}

/** What nobody sees in a value, unless it is a text for people or JSON. A mark of UTF-8 belongs to no text. */
export function hiddenFault(
  text: string,
  { meta, trimmed }: { meta: FieldMeta; trimmed: boolean },
): Fault | undefined {
  const { kind } = meta
  const isText = kind === 'text' || kind === 'timestamp'
  if (kind === 'json' || kind === 'list' || kind === 'object' || meta.isFreeText === true)
    return text.includes('\ufeff')
      ? { rule: 'invisible', message: 'has an invisible letter (U+FEFF)', fix: text.replaceAll('\ufeff', '') }
      : undefined
  const isWord = trimmed || !isText || meta.values !== undefined || meta.format === 'email'
  return invisibleFault(isWord ? text.trim() : text, { isText })
}

function fixEmail(text: string): string | undefined {
  if (text.length > longestEmail) return undefined
  const fix = text
    .trim()
    .replaceAll(/\s+/g, '')
    .replace(/[,;.]+$/, '')
  return email.test(fix) ? fix : undefined
}
