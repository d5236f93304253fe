import { Big } from 'big.js'

/** A number in one notation, so that equal numbers are equal texts. A text that is no number stays as it is. */
export function toPlainNumber(text: string): string {
  try {
    return new Big(text).toFixed()
  } catch {
    return text
  }
}
