import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { toPlainNumber } from '../../../core/destinations/warehouse/plain-number.ts'

test.each([
  ['0.10', '0.1'],
  ['-0', '0'],
  ['0.000', '0'],
  ['1500.500000000000000000', '1500.5'],
  ['1e3', '1000'],
  ['1.25E+1', '12.5'],
  ['-12e-3', '-0.012'],
  ['12345678901234567890.10', '12345678901234567890.1'],
  ['1e40', `1${'0'.repeat(40)}`],
  ['NaN', 'NaN'],
])('%s is %s', (text, plain) => {
  expect(toPlainNumber(text)).toBe(plain)
})

test('numbers are equal exactly if their plain texts are', () => {
  const part = fc.integer({ min: -999, max: 999 })
  const exponent = fc.integer({ min: -6, max: 6 })
  fc.assert(
    fc.property(part, exponent, part, exponent, (one, oneExponent, other, otherExponent) => {
      const isEqual =
        BigInt(one) * 10n ** BigInt(oneExponent + 6) === BigInt(other) * 10n ** BigInt(otherExponent + 6)
      expect(toPlainNumber(`${one}e${oneExponent}`) === toPlainNumber(`${other}e${otherExponent}`)).toBe(
        isEqual,
      )
      // And none loses what it is worth.
      expect(Number(toPlainNumber(`${one}e${oneExponent}`))).toBe(Number(`${one}e${oneExponent}`) || 0)
    }),
    { seed: 20260301 },
  )
})
