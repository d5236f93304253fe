import { Big } from 'big.js'

/** An exact sum of plain decimals (digits, a point, a sign). */
export interface ExactSum {
  add(digits: string): void
  /** In plain digits, with as many decimal places as the longest summand. */
  total(): string
}

export function createExactSum(): ExactSum {
  let sum = new Big(0)
  let places = 0
  return {
    add(digits) {
      const point = digits.indexOf('.')
      if (point !== -1) places = Math.max(places, digits.length - point - 1)
      sum = sum.plus(digits)
    },
    total: () => sum.toFixed(places),
  }
}
