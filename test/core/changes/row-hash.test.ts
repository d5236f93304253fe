import fc from 'fast-check'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Body } from '../../../core/billing/client.ts'
import { parseBody } from '../../../core/changes/body.ts'
import { createAddon } from '../../../core/changes/kinds/create-addon.ts'
import { createProduct } from '../../../core/changes/kinds/create-product.ts'
import { openState } from '../../../core/state/open.ts'
import type { NewChange } from '../../../core/state/ledger/stage.ts'
import { temporaryFolder } from './engine.ts'

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

/** A ledger as it was before keys were normalised. */
async function oldLedger(changes: readonly Pick<NewChange, 'row' | 'key' | 'body'>[], kind = 'create-addon') {
  const folder = await temporaryFolder()
  const state = await openState({ folder })
  const space = { workspace: 'acc_1', mode: 'live', kind } as const
  await state.ledger.stage({ ...space, run: 'old', repeats: 'never', changes })
  const move = async (row: number, to: 'done' | 'parked' | 'rejected') => {
    const { id } = (await state.ledger.row({ run: 'old', row }))!
    await state.ledger.move({ id, from: ['staged'], patch: { state: to } })
  }
  const reopen = async () => {
    await state.close()
    const database = new DatabaseSync(join(folder, 'state.db'))
    database.exec(`alter table watermarks drop column seen_claims;
      delete from kysely_migration where name >= '0003'`)
    database.close()
    return await openState({ folder })
  }
  return { move, reopen, space }
}

test('a row that an older version has done is known again when its file was saved again', async () => {
  const body = JSON.stringify(addon({ amount: raw('10.00'), status: 'active' }))
  const { move, reopen, space } = await oldLedger([{ row: 1, key: 'old key', body }])
  await move(1, 'done')
  await using stack = new AsyncDisposableStack()
  const state = await reopen()
  stack.defer(() => state.close())
  const again = addon({ name: 'Café'.normalize('NFD') })
  const changes = [{ row: 1, key: createAddon.keyOf(again), body: JSON.stringify(again) }]
  const result = await state.ledger.stage({ ...space, run: 'new', repeats: 'never', changes })
  expect(result).toMatchObject({ staged: 0, held: [{ row: 1, by: { run: 'old', state: 'done' } }] })
})

test('rows of an older version that are now the same row are all kept, and the first still holds the key', async () => {
  const body = (amount: string) => JSON.stringify(addon({ amount: raw(amount) }))
  const amounts = ['10', '10.0', '10.00', '10.000', '1e1']
  const changes = amounts.map((amount, index) => ({ row: index + 1, key: amount, body: body(amount) }))
  const { move, reopen, space } = await oldLedger(changes)
  for (const row of [1, 2]) await move(row, 'done')
  await move(3, 'parked')
  await move(4, 'rejected')
  for (const _ of ['once', 'and once more']) {
    await using stack = new AsyncDisposableStack()
    const state = await reopen()
    stack.defer(() => state.close())
    const rows = await state.ledger.underKeys({ ...space, run: 'old', keys: [createAddon.keyOf(addon())] })
    expect(rows.map(({ state, generation, holdsKey }) => [state, generation, holdsKey] as const)).toEqual([
      ['done', 0, true],
      ['done', 1, true],
      ['parked', 2, true],
      ['rejected', 0, true],
      ['staged', 0, false],
    ])
  }
})

const amount = fc.stringMatching(/^-?(0|[1-9]\d{0,12})(\.\d{1,6})?(e[+-]?\d)?$/).map(raw)
const text = fc.constantFrom('a', 'Café'.normalize('NFD'), '', '10.0', 'active', 'one_time', '"')
const anyAddon = fc.record(
  {
    name: text,
    description: text,
    amount,
    sku: fc.option(text),
    apply_scheme: text,
    status: text,
    duration_times: amount,
  },
  { requiredKeys: [] },
)
const anyProduct = fc.record({ name: text, unit_label: text, status: text }, { requiredKeys: [] })

test.each([
  [createAddon, anyAddon],
  [createProduct, anyProduct],
])('the migration gives each row the key that it has in a file of today', async (kind, arbitrary) => {
  const bodies = fc.sample<Body>(arbitrary, { numRuns: 300, seed: 12 })
  const changes = bodies.map((body, at) => ({ row: at + 1, key: `old-${at}`, body: JSON.stringify(body) }))
  const { reopen } = await oldLedger(changes, kind.name)
  await using stack = new AsyncDisposableStack()
  const state = await reopen()
  stack.defer(() => state.close())
  for await (const row of state.ledger.rows({ run: 'old' })) expect(row.key).toBe(kind.keyOf(parseBody(row)))
})
