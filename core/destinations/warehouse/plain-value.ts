import { Big } from 'big.js'

/** A number in one notation, so that equal numbers are equal texts. A text that is no number stays as it is. */
export function toPlainNumber(text: string): string {
  try {
    // With an exponent, because plain digits of `1e999999999` fill the memory.
    return new Big(text).toExponential()
  } catch {
    return text
  }
}

/**
 * A JSON document in one notation: keys in order, numbers as `toPlainNumber` writes them. A text that is no JSON stays
 * as it is.
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
