/**
 * A JSON parser that keeps every digit of a number.
 *
 * `JSON.parse` rounds 12345678901234567.89 and turns 0.10 into 0.1. Its reviver sees the source of each number, but is
 * called for every value, which is seven times as slow (3.9 ms instead of 0.54 for 110 KB); and amounts with trailing
 * zeros are the normal case. So one regular expression first quotes the numbers that would change, with a marker; the
 * plain parser runs; and a walk turns them back into numbers (0.9 ms in all).
 *
 * This is safe without scanning strings: in JSON text, a quote right after a word character is not escaped, so it opens
 * or closes a string, and no string opens right after a word character. So it closes one; the colon shows that this was
 * a key, and what follows is its value. Numbers and strings are allowed in the same places, so the text is valid before
 * if and only if it is valid after. The walk finds numbers elsewhere (in arrays, at the top, after keys that end in
 * another character). If one of them might have changed, or the text contains the marker itself, the reviver is used.
 */
import { Big } from 'big.js'
import type { RawNumber } from './resources/fields.ts'

declare global {
  // The type library of TypeScript 7.0 does not know these yet (ECMAScript: JSON.parse source text access); Node 24 does.
  interface JSON {
    rawJSON(text: string): { readonly rawJSON: string }
    isRawJSON(value: unknown): value is { readonly rawJSON: string }
    parse(
      text: string,
      reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
    ): unknown
  }
}

const marker = '\u007f'
const markerCode = 0x7f
const space = '[\\t\\n\\r ]*'
/**
 * Matches numbers whose text `JSON.parse` may change, and some that it does not (`toNumber` decides): fractions that end
 * in 0; 16 characters and more, since 15 digits are always preserved; below 0.000001; exponents; -0.
 */
const suspect = '-?(?:\\d+\\.\\d*0|\\d[\\d.]{15,}|0\\.0{6}\\d+|\\d[\\d.]*[eE][-+]?\\d+|0)'
const afterKey = new RegExp(`(?<=\\w)"${space}:${space}(${suspect})(?=[,}\\]\\t\\n\\r ])`, 'g')
const elsewhere = new RegExp(`(?:[[,]|"${space}:)${space}${suspect}${space}[,}\\]]`)

/**
 * Parses JSON. Numbers whose text `JSON.parse` would change become `JSON.rawJSON` objects (`RawNumber`), which
 * `JSON.stringify` writes back unchanged; all others become numbers.
 * @throws {SyntaxError}
 */
export function parseLossless(text: string): unknown {
  const quoted = text.replace(afterKey, `":"${marker}$1"`)
  if (text.includes(marker) || text.includes('\\u007')) return parseSlowly(text)
  const value: unknown = JSON.parse(quoted)
  // Here, because a pattern that also matches at the ends of the text takes twice as long.
  if (typeof value === 'number') return parseSlowly(text)
  return restore(value) || !elsewhere.test(quoted) ? value : parseSlowly(text)
}

/** Whether a value is a number whose digits plain parsing would have changed. */
export const isRawNumber = (value: unknown): value is RawNumber => JSON.isRawJSON(value)

/** Whether a value is a JSON object; a number kept as raw JSON is not. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value)

/** The text of a JSON scalar: a string itself, a number's digits as sent, `true` or `false`. */
export function toScalarText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return `${value}`
  return isRawNumber(value) ? value.rawJSON : undefined
}

/** A number of any length, digit for digit: money never becomes a float. Undefined for a text that is not a number. */
export function toDecimal(text: string): Big | undefined {
  try {
    return new Big(text.trim().replace(/^\+(?=[\d.])/, ''))
  } catch {
    return undefined
  }
}

/** The text of a number as the service wrote it. */
export function numberText(value: number | string | RawNumber): string {
  return typeof value === 'object' ? value.rawJSON : String(value)
}

function parseSlowly(text: string): unknown {
  // A number without a source would lose its digits: JSON.rawJSON rejects ''.
  return JSON.parse(text, (_key, value, { source = '' }) =>
    typeof value === 'number' ? toNumber(source) : value,
  )
}

/**
 * Turns marked strings, which occur only after keys, back into numbers, in place.
 * Returns false if it found a number where `afterKey` does not match.
 */
function restore(root: unknown): boolean {
  let sawAll = true
  // Not recursive: a hostile text may nest deeper than the stack.
  const stack: unknown[] = [root]
  while (stack.length > 0) {
    const value = stack.pop()
    if (typeof value === 'number') sawAll = false
    if (typeof value !== 'object' || value === null) continue
    if (Array.isArray(value)) {
      for (const item of value) stack.push(item)
      continue
    }
    const record = value as Record<string, unknown>
    // `for in` is faster than Object.keys here, and parsed objects inherit nothing that it would list.
    for (const key in record) {
      const item = record[key]
      if (typeof item === 'string') {
        if (item.charCodeAt(0) === markerCode) record[key] = toNumber(item.slice(1))
      } else if (typeof item === 'number') {
        if (!/\w$/.test(key)) sawAll = false
      } else if (typeof item === 'object' && item !== null) stack.push(item)
    }
  }
  return sawAll
}

function toNumber(text: string): number | RawNumber {
  const number = Number(text)
  return String(number) === text ? number : JSON.rawJSON(text)
}
