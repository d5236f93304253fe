import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { retention } from '../../../core/billing/resources/tax-documents.ts'
import {
  canonicalDecimal,
  compareDecimals,
  differencesOf,
  sameDecimal,
} from '../../../core/changes/compare-fields.ts'
import { retentionKey } from '../../../core/changes/kinds/create-retention.ts'
import type { Body } from '../../../core/billing/client.ts'
import { asksForOther } from '../../../core/changes/body.ts'
import { createAddon } from '../../../core/changes/kinds/simple.ts'

const seed = 1
const raw = (text: string) => JSON.rawJSON(text)
const differences = (sent: object, stored: object) =>
  differencesOf({ schema: retention, sent, stored }).map(({ field }) => field)

test('the same number in other digits is not a difference, another number is', () => {
  expect(differences({ total: raw('1.50') }, { total: '1.5' })).toEqual([])
  expect(
    differences({ total: raw('12345678901234567.890') }, { total: raw('12345678901234567.89') }),
  ).toEqual([])
  expect(differences({ total: raw('12345678901234567.89') }, { total: raw('12345678901234567.88') })).toEqual(
    ['total'],
  )
  expect(differences({ number: 7 }, { number: '007' })).toEqual([])
  expect(differences({ total: 0 }, { total: null })).toEqual(['total'])
})

test('only fields that were sent are compared with the stored ones, and null equals absence', () => {
  expect(differences({ supplier: 'a', tax: null }, { supplier: 'a', id: 7, status: 'draft' })).toEqual([])
  expect(differences({ supplier: 'a ' }, { supplier: 'a' })).toEqual(['supplier'])
})

test('dates are dates and lines are compared line by line', () => {
  expect(differences({ date: '2026-03-01' }, { date: '2026-03-01T00:00:00-03:00' })).toEqual([])
  expect(differences({ date: '2026-03-01' }, { date: '2026-03-02' })).toEqual(['date'])
  const sent = { lines: [{ name: 'a' }, { name: 'b', amount: raw('2.10') }] }
  expect(
    differences(sent, {
      lines: [
        { id: 1, name: 'a' },
        { id: 2, name: 'b', amount: 2.1 },
      ],
    }),
  ).toEqual([])
  expect(differences(sent, { lines: [{ name: 'a' }, { name: 'b', amount: 2.11 }] })).toEqual([
    'lines.2.amount',
  ])
  expect(differences(sent, { lines: [{ name: 'a' }] })).toEqual(['lines'])
})

test(`decimals: the same value in any writing is the same, and order follows the value (seed ${seed})`, () => {
  const decimal = fc.record({
    units: fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }),
    places: fc.integer({ min: 0, max: 12 }),
    zeros: fc.integer({ min: 0, max: 4 }),
  })
  const write = ({ units, places, zeros }: { units: bigint; places: number; zeros: number }) => {
    const digits = String(units < 0n ? -units : units).padStart(places + 1, '0')
    const [whole, fraction] = [digits.slice(0, digits.length - places), digits.slice(digits.length - places)]
    return `${units < 0n ? '-' : ''}${'0'.repeat(zeros)}${whole}.${fraction}${'0'.repeat(zeros)}`
  }
  const property = fc.property(decimal, decimal, (a, b) => {
    const exact = a.units * 10n ** BigInt(b.places) - b.units * 10n ** BigInt(a.places)
    const expected = exact === 0n ? 0 : exact < 0n ? -1 : 1
    expect(compareDecimals(write(a), write(b))).toBe(expected)
    expect(sameDecimal(write(a), write(b))).toBe(expected === 0)
    expect(sameDecimal(write(a), `${a.units}e-${a.places}`)).toBe(true)
  })
  fc.assert(property, { seed, numRuns: 500 })
})

test('keys are the same for the same thing, whatever its order and its leading zeros', () => {
  expect(retentionKey({ supplier: 's', document: 7, number: '007' })).toBe(
    retentionKey({ number: 7, document: '7', supplier: 's' }),
  )
  expect(retentionKey({ supplier: 's', document: 7, number: 17 })).not.toBe(
    retentionKey({ supplier: 's', document: 71, number: 7 }),
  )
})

test('numbers with large exponents are compared by value, and a text that is not a number is less than any', () => {
  expect(sameDecimal('1e9999', '10e9998')).toBe(true)
  expect(compareDecimals('1e9999', '1e-9999')).toBeGreaterThan(0)
  expect(sameDecimal('-0', '0.00')).toBe(true)
  expect(sameDecimal('+1.5', '1.5e0')).toBe(true)
  expect(compareDecimals('+-1', '-5')).toBeLessThan(0)
})

test.each([
  ['-12.340', '-1234e-2'],
  ['1500', '15e2'],
  ['-0.00', '0e0'],
  ['1.5e0', '15e-1'],
  ['1e9999', '1e9999'],
  ['n/a', 'n/a'],
])('%s is kept in keys of the ledger as %s, whatever library reads it', (text, canonical) => {
  expect(canonicalDecimal(text)).toBe(canonical)
})

const addon = (more: object = {}): Body => ({
  name: 'Café',
  description: 'x',
  currency: 'CLP',
  amount: raw('10'),
  ...more,
})

test.each([
  ['10.00 and 10', addon({ amount: raw('10.00') }), addon({ amount: 10 })],
  ['1500.5 and "1500.50"', addon({ amount: raw('1500.5') }), addon({ amount: '1500.50' })],
  ['1e3 and 1000', addon({ amount: raw('1e3') }), addon({ amount: 1000 })],
  ['NFC and NFD', addon({ name: 'Café'.normalize('NFC') }), addon({ name: 'Café'.normalize('NFD') })],
  ['a default that is spelled out', addon(), addon({ apply_scheme: 'one_time', status: 'active' })],
  ['null and nothing', addon(), addon({ sku: null })],
  ['another order', { name: 'a', amount: 1 }, { amount: 1, name: 'a' }],
])('%s are one addon', (_what, one, other) => {
  expect(createAddon.keyOf(one)).toBe(createAddon.keyOf(other))
})

test.each([
  ['10 and 100', addon(), addon({ amount: 100 })],
  ['10 and -10', addon(), addon({ amount: -10 })],
  ['another scheme', addon(), addon({ apply_scheme: 'recurring' })],
  ['the texts 1 and 1.0', addon({ sku: '1' }), addon({ sku: '1.0' })],
  ['a text that moves to another field', addon({ sku: 'a' }), addon({ unit_label: 'a' })],
])('%s are two addons', (_what, one, other) => {
  expect(createAddon.keyOf(one)).not.toBe(createAddon.keyOf(other))
})

test('an update asks for the same in any order of its fields and any writing of its values', () => {
  const one =
    '{"id":"sub_1","note":"Peri\u00f3dica","custom_change":950.50,"addons":[{"addon":"a","quantity":2},{}]}'
  const same =
    '{"addons":[{"quantity":2,"addon":"a"},{}],"custom_change":950.5,"id":"sub_1","note":"Perio\u0301dica"}'
  expect(asksForOther(one, same)).toBe(false)
  for (const [from, to] of [
    ['950.50', '950.51'],
    ['950.50', '"950.50"'],
    ['Peri', 'peri'],
    ['{"addon":"a","quantity":2},{}', '{},{"addon":"a","quantity":2}'],
    ['"note"', '"status_description"'],
    ['950.50', 'null'],
  ] as const)
    expect([to, asksForOther(one, one.replace(from, to))]).toEqual([to, true])
})
