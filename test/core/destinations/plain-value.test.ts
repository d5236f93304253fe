import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { toPlainJson, toPlainNumber } from './plain-value.ts'

test.each([
  ['0.10', '1e-1'],
  ['-0', '0'],
  ['0.000', '0'],
  ['1500.500000000000000000', '1500.5'],
  ['1e3', '1000'],
  ['1.25E+1', '12.5'],
  ['-12e-3', '-0.012'],
  ['12345678901234567890.10', '12345678901234567890.1'],
  ['1e999999999', '10e999999998'],
])('%s is the same number as %s', (text, other) => {
  expect(toPlainNumber(text)).toBe(toPlainNumber(other))
})

test.each([
  ['12345678901234567.89', '12345678901234567.88'],
  ['1', '-1'],
  ['1e999999999', '1e999999998'],
  ['NaN', '0'],
])('%s is another number than %s', (text, other) => {
  expect(toPlainNumber(text)).not.toBe(toPlainNumber(other))
})

test('a JSON document is the same in any order of keys, spacing and notation of its numbers, at any depth', () => {
  const document = '{"b":[1.50,null,{"z":1e3,"a":"x"}],"a":-0,"\\u00f1":{"__proto__":1}}'
  const asJsonb = '{"a": 0, "b": [1.50, null, {"a": "x", "z": 1000}], "ñ": {"__proto__": 1}}'
  expect(toPlainJson(document)).toBe(toPlainJson(asJsonb))
})

test.each([
  ['[1,2]', '[2,1]'],
  ['{"a":12345678901234567.89}', '{"a":12345678901234567.88}'],
  ['{"a":1}', '{"a":"1"}'],
  ['{"a":{}}', '{"a":[]}'],
  ['{"a":null}', '{}'],
  ['{"__proto__":1}', '{}'],
])('the document %s is another than %s', (text, other) => {
  expect(toPlainJson(text)).not.toBe(toPlainJson(other))
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
