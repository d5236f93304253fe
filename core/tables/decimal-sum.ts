/** Adds decimals exactly, however long they are. The sum has the decimal places of the longest of them. */
export class DecimalSum {
  #units = 0n
  #places = 0

  /** @param decimal digits with a sign, a point or an exponent, as JSON has them */
  add(decimal: string, times = 1n): this {
    const exponentAt = decimal.search(/e/i)
    const digits = exponentAt === -1 ? decimal : decimal.slice(0, exponentAt)
    const exponent = exponentAt === -1 ? 0 : Number(decimal.slice(exponentAt + 1))
    const point = digits.indexOf('.')
    const places = (point === -1 ? 0 : digits.length - point - 1) - exponent
    const units = times * BigInt(point === -1 ? digits : digits.slice(0, point) + digits.slice(point + 1))
    if (places > this.#places) {
      this.#units *= 10n ** BigInt(places - this.#places)
      this.#places = places
    }
    this.#units += places === this.#places ? units : units * 10n ** BigInt(this.#places - places)
    return this
  }

  /** `-1883.50` */
  toString(): string {
    const [sign, units] = this.#units < 0n ? ['-', -this.#units] : ['', this.#units]
    const digits = String(units).padStart(this.#places + 1, '0')
    const whole = digits.slice(0, digits.length - this.#places)
    return this.#places === 0 ? `${sign}${whole}` : `${sign}${whole}.${digits.slice(-this.#places)}`
  }
}

export const addDecimals = (a: string, b: string): string => new DecimalSum().add(a).add(b).toString()

export const subtractDecimals = (a: string, b: string): string =>
  addDecimals(a, b.startsWith('-') ? b.slice(1) : `-${b}`)

/** Numbers whose sum means nothing: percentages and conversion factors. */
export const isAmount = (field: string): boolean => !/percent|custom_change$/.test(field)
