import type { FieldMeta } from '../../billing/resources/fields.ts'
import { compareDecimals } from '../../changes/decimals.ts'
import { nearestName } from '../../tables/nearest-name.ts'
import type { Fault } from '../problems.ts'

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

function fixEmail(text: string): string | undefined {
  if (text.length > longestEmail) return undefined
  const fix = text
    .trim()
    .replaceAll(/\s+/g, '')
    .replace(/[,;.]+$/, '')
  return email.test(fix) ? fix : undefined
}
