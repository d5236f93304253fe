import { toDecimal } from '../billing/lossless-json.ts'

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
