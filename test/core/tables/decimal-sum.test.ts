import { Big } from 'big.js'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { addDecimals, DecimalSum, subtractDecimals } from '../../../core/tables/decimal-sum.ts'

const decimal = fc
  .tuple(
    fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }),
    fc.nat({ max: 30 }),
    fc.integer({ min: -40, max: 40 }),
  )
  .map(([units, places, exponent]) => {
    const digits = String(units < 0n ? -units : units).padStart(places + 1, '0')
    const text = places === 0 ? digits : `${digits.slice(0, -places)}.${digits.slice(-places)}`
    return `${units < 0n ? '-' : ''}${text}${exponent === 0 ? '' : `E${exponent}`}`
  })

test('a sum of decimals is exact, whatever their length, sign and exponent', () => {
  fc.assert(
    fc.property(fc.array(decimal, { maxLength: 30 }), (decimals) => {
      const sum = new DecimalSum()
      for (const one of decimals) sum.add(one)
      const exact = decimals.reduce((all, one) => all.plus(one), new Big(0))
      expect(new Big(sum.toString()).eq(exact)).toBe(true)
      const [first = '0', second = '0'] = decimals
      expect(new Big(subtractDecimals(first, second)).eq(new Big(first).minus(second))).toBe(true)
    }),
    { seed: 20_261_126 },
  )
})

test('a sum has the decimal places of the longest decimal, as money has', () => {
  expect(['0.10', '-0.30', '0.2'].reduce(addDecimals)).toBe('0.00')
  expect(['10', '0.50'].reduce(addDecimals)).toBe('10.50')
  expect(['-0.05', '1e2', '0'].reduce(addDecimals)).toBe('99.95')
  expect(addDecimals('-1883.5', '1.25')).toBe('-1882.25')
  expect(new DecimalSum().toString()).toBe('0')
})
