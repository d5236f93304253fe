import type { FieldMeta } from '../billing/resources/fields.ts'
import { compareDecimals } from '../changes/decimals.ts'
import { nearestName } from '../tables/nearest-name.ts'
import type { Fault } from './problems.ts'

const short = /^[1-9]\d{0,8}(\.\d{0,5}[1-9])?$/

/** A number with every digit, as `parseLossless` gives it. */
export function toJsonNumber(digits: string): unknown {
  // Up to 15 digits always come back; this spares most numbers of a file the way there.
  if (short.test(digits)) return Number(digits)
  const number = Number(digits)
  return String(number) === digits ? number : JSON.rawJSON(digits)
}

/** No address is longer; to look for one in a longer text takes time that grows with its square. */
const longestEmail = 320
const email = /^[^\s@,;<>()"]+@[^\s@,;<>()".]+(\.[^\s@,;<>()".]+)+$/

/** What a field's rules say against a text (of a number: its digits) that reads well for its kind. */
export function faultOf(text: string, meta: FieldMeta): Fault | undefined {
  if (meta.values !== undefined && !meta.values.includes(text)) {
    const fix = nearestName(text, meta.values)
    return {
      rule: 'value',
      words: `is none of ${meta.values.join(', ')}`,
      ...(fix === undefined ? {} : { fix }),
    }
  }
  // The service counts characters, not halves of surrogate pairs. As many halves can't be more characters.
  if (meta.maxLength !== undefined && text.length > meta.maxLength) {
    const length = Array.from(text).length
    if (length > meta.maxLength)
      return { rule: 'length', words: `has ${length} characters, and ${meta.maxLength} are allowed` }
  }
  if (meta.format === 'email' && !email.test(text))
    return { rule: 'email', words: 'is not an e-mail address', ...fixOfEmail(text) }
  if (meta.min !== undefined && compareDecimals(text, meta.min) < 0)
    return { rule: 'min', words: `is less than ${meta.min}` }
  return undefined
}

function fixOfEmail(text: string): { fix?: string } {
  if (text.length > longestEmail) return {}
  const fix = text
    .trim()
    .replaceAll(/\s+/g, '')
    .replace(/[,;.]+$/, '')
  return email.test(fix) ? { fix } : {}
}
