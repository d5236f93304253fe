/** Decimals as texts, exactly: money never becomes a float here. */

interface Decimal {
  negative: boolean
  /** Without leading and trailing zeros; '' is zero. */
  digits: string
  /** Of the digit after the last of `digits`. */
  exponent: number
}

/** Longer exponents than any number of the service, and short enough that padding them costs nothing. */
const largestExponent = 10_000

function parseDecimal(text: string): Decimal | undefined {
  const parts = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,6}))?$/i.exec(text.trim())
  if (parts === null) return undefined
  const [, sign, whole = '', fraction = '', exponent = '0'] = parts
  if (whole === '' && fraction === '') return undefined
  const significant = (whole + fraction).replace(/^0+/, '')
  const digits = significant.replace(/0+$/, '')
  const shift = Number(exponent) - fraction.length + (significant.length - digits.length)
  if (Math.abs(shift) > largestExponent) return undefined
  return { negative: sign === '-' && digits !== '', digits, exponent: digits === '' ? 0 : shift }
}

/** The same text for the same number, whatever its zeros; a text that is no number stays as it is. */
export function canonicalDecimal(text: string): string {
  const decimal = parseDecimal(text)
  if (decimal === undefined) return text
  const { negative, digits, exponent } = decimal
  return `${negative ? '-' : ''}${digits || '0'}e${exponent}`
}

/** Whether two texts are the same number: `1.50` and `1.5e0` are, whatever their zeros. */
export function sameDecimal(one: string, other: string): boolean {
  const a = parseDecimal(one)
  const b = parseDecimal(other)
  if (a === undefined || b === undefined) return one === other
  return a.negative === b.negative && a.digits === b.digits && a.exponent === b.exponent
}

/** Below zero where the first is less. What is no number is less than any. */
export function compareDecimals(one: string, other: string): number {
  const a = parseDecimal(one)
  const b = parseDecimal(other)
  if (a === undefined || b === undefined) return Number(a !== undefined) - Number(b !== undefined)
  const exponent = Math.min(a.exponent, b.exponent)
  const difference = scaled(a, exponent) - scaled(b, exponent)
  return difference === 0n ? 0 : difference < 0n ? -1 : 1
}

const scaled = ({ negative, digits, exponent }: Decimal, to: number) =>
  BigInt(`${negative ? '-' : ''}${digits || '0'}${'0'.repeat(exponent - to)}`)
