import { Big } from 'big.js'

/** A number of any length, digit for digit: money never becomes a float. Undefined for a text that is no number. */
export function toDecimal(text: string): Big | undefined {
  try {
    return new Big(text.trim().replace(/^\+(?=[\d.])/, ''))
  } catch {
    return undefined
  }
}
