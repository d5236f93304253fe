import { expect, test } from 'vitest'
import type { Body } from '../../../core/billing/client.ts'
import { createAddon } from '../../../core/changes/kinds/simple.ts'

const raw = (text: string) => JSON.rawJSON(text)
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
