import { toDecimal } from '../billing/decimal.ts'

/** The same text for the same number, whatever its zeros; a text that is no number stays as it is. */
export function canonicalDecimal(text: string): string {
  const decimal = toDecimal(text)
  if (decimal === undefined) return text
  const { s: sign, e: exponent, c: digits } = decimal
  if (digits[0] === 0) return '0e0'
  return `${sign < 0 ? '-' : ''}${digits.join('')}e${exponent - digits.length + 1}`
}

/** Whether two texts are the same number: `1.50` and `1.5e0` are, whatever their zeros. */
export function sameDecimal(one: string, other: string): boolean {
  const [a, b] = [toDecimal(one), toDecimal(other)]
  return a === undefined || b === undefined ? one === other : a.eq(b)
}

/** Below zero where the first is less. A text that is no number is less than any number. */
export function compareDecimals(one: string, other: string): number {
  const [a, b] = [toDecimal(one), toDecimal(other)]
  return a === undefined || b === undefined ? Number(a !== undefined) - Number(b !== undefined) : a.cmp(b)
}
