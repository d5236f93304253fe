/** A sum of decimal texts, to the last digit. */
export interface ExactSum {
  add(digits: string): void
  /** In plain digits, with as many places behind the point as the longest that was added. */
  total(): string
}

export function createExactSum(): ExactSum {
  let sum = 0n
  let places = 0
  return {
    add(digits) {
      const point = digits.indexOf('.')
      const own = point === -1 ? 0 : digits.length - point - 1
      const scaled = point === -1 ? digits : digits.slice(0, point) + digits.slice(point + 1)
      if (own > places) {
        sum *= 10n ** BigInt(own - places)
        places = own
      }
      sum += BigInt(own === places ? scaled : scaled + '0'.repeat(places - own))
    },
    total() {
      if (places === 0) return String(sum)
      const digits = String(sum < 0n ? -sum : sum).padStart(places + 1, '0')
      return `${sum < 0n ? '-' : ''}${digits.slice(0, -places)}.${digits.slice(-places)}`
    },
  }
}
