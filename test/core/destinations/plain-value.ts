import { Big } from 'big.js'

/** Writes a number in one notation, so that equal numbers are equal texts. Returns other text unchanged. */
export function toPlainNumber(text: string): string {
  try {
    // With an exponent, because the plain digits of `1e999999999` would fill the memory.
    return new Big(text).toExponential()
  } catch {
    return text
  }
}

/**
 * Writes a JSON document in one notation: keys sorted, numbers as `toPlainNumber` writes them. Returns other
 * text unchanged.
 */
export function toPlainJson(text: string): string {
  try {
    return JSON.stringify(
      JSON.parse(text, (_key, value: unknown, { source }) => {
        if (typeof value === 'number') return JSON.rawJSON(toPlainNumber(source ?? ''))
        if (typeof value !== 'object' || value === null || Array.isArray(value) || JSON.isRawJSON(value))
          return value
        return Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
      }),
    )
  } catch {
    return text
  }
}
