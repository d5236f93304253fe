/**
 * Tax ids whose last sign is a check digit: RUT in Chile, NIT in Colombia. `12345674` alone may be 1.234.567-4, or
 * 12.345.674 without its digit.
 */

/** The meaning of a tax id without a hyphen. */
export const taxIdForms = ['with-digit', 'without-digit'] as const

export type TaxId = { body: string; digit: string } | { digits: string }

/** Dots and leading zeros do not count. Undefined for any other id, such as a CPF, a CUIT or an RFC. */
export function parseTaxId(text: string): TaxId | undefined {
  const [, body = '', digit = ''] =
    /^([\d.]+)-([\dk])$/.exec(text) ??
    /^([\d.]+)(k)$/.exec(text) ??
    /^(\d{1,3}(?:\.\d{3})+)([\dk])$/.exec(text) ??
    []
  if (digit !== '') {
    const digits = digitsOf(body)
    return digits === undefined || digits.length < 6 ? undefined : { body: digits, digit }
  }
  const digits = digitsOf(text)
  return digits === undefined || digits.length < 7 ? undefined : { digits }
}

function digitsOf(text: string): string | undefined {
  if (!/^(?:\d+|\d{1,3}(?:\.?\d{3})+)$/.test(text)) return undefined
  const digits = text.replaceAll('.', '').replace(/^0+/, '')
  return digits.length <= 10 ? digits : undefined
}

/** `12345674` as a tax id with its digit, and without it. */
export const taxIdReadings = (digits: string) => ({
  withDigit: `${grouped(digits.slice(0, -1))}-${digits.slice(-1)}`,
  withoutDigit: grouped(digits),
})

const grouped = (digits: string) => digits.replace(/\B(?=(?:\d{3})+$)/g, '.')

/**
 * Whether ids end with their check digits: nearly all of them pass. Of three that do not, one of 700 files passes by
 * chance.
 */
export function haveCheckDigits(ids: Iterable<string>, fewest = 3): boolean {
  const all = [...ids]
  return [rutDigit, nitDigit].some((digitOf) => {
    const passed = all.filter((id) => digitOf(id.slice(0, -1)) === id.slice(-1)).length
    return passed >= fewest && passed >= all.length * 0.75
  })
}

const rutWeights = [2, 3, 4, 5, 6, 7]
const nitWeights = [3, 7, 13, 17, 19, 23, 29, 37, 41, 43]

const rutDigit = (body: string) => '0k987654321'.charAt(remainder(body, rutWeights))
const nitDigit = (body: string) => '01987654321'.charAt(remainder(body, nitWeights))

const remainder = (body: string, weights: readonly number[]): number =>
  Array.from(body, Number)
    .toReversed()
    .reduce((sum, digit, index) => sum + digit * (weights[index % weights.length] ?? 0), 0) % 11
