import { Big } from 'big.js'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { listResources } from '../../../core/billing/resources/lists.ts'
import { createRowEncoder } from '../../../core/tables/row-encoder.ts'
import { addTotals, judgeTotals, noTotals } from '../../../core/tables/totals.ts'
import { addDrift, noDrift } from '../../../core/tables/drift.ts'
import { parseRows } from './csv.ts'

const { plans } = listResources
const seed = 20_261_126

const amount = fc.constantFrom(
  '1.50',
  '-0.1',
  '1e3',
  '12345678901234567890.12',
  '0',
  null,
  'many',
  { a: 1 },
  '',
)
const plan = fc.record({
  id: fc.uuid(),
  currency: fc.constantFrom('CLP', 'usd', null, 'a long one', 7, { code: 'CLP' }, 'a\u0000b'),
  amount,
  created: fc.constantFrom(
    '2026-01-01T00:00:00Z',
    '2026-01-01T00:30:00+01:00',
    '2025-12-31T23:59:59.5Z',
    '0001-01-01T00:00:00.000001Z',
    '9999-12-31T23:59:59.999999Z',
    'now',
    null,
  ),
  tiers: fc.array(fc.oneof(fc.record({ amount, quantity_to: amount }), fc.constant('not an object')), {
    maxLength: 3,
  }),
  metadata: fc.constantFrom(1, 'deep'),
})

/** An object that is nested too deeply for a row. */
const deep = () => Array.from({ length: 600 }).reduce<object>((inner) => ({ inner }), {})

test('the totals of a read are those of its rows, however it was divided, and whatever the service sent', () => {
  fc.assert(
    fc.property(fc.array(fc.array(plan, { maxLength: 8 }), { minLength: 1, maxLength: 6 }), (pages) => {
      const [totals, drift] = [noTotals(), noDrift()]
      const texts = ['', '']
      const created: string[] = []
      for (const page of pages) {
        // Each page by an attempt of its own.
        const encoder = createRowEncoder({ resource: plans })
        const records = page.map((one) => (one.metadata === 'deep' ? { ...one, metadata: deep() } : one))
        const encoded = encoder.encode(records)
        addTotals(totals, structuredClone(encoded.totals))
        addDrift(drift, encoded.drift)
        for (const [at, { text }] of encoded.tables.entries()) texts[at] += text
      }
      const tables = createRowEncoder({ resource: plans }).tables
      const judged = judgeTotals(tables, totals, drift.misfits)
      const [rows, tierRows] = texts.map((text) => parseRows(text)) as [
        (string | null)[][],
        (string | null)[][],
      ]
      const currencies = new Map<string, string>()
      const place = (at: number, name: string) =>
        tables[at]!.columns.findIndex((column) => column.name === name)
      for (const row of rows) {
        const currency = row[place(0, 'currency')] ?? ''
        currencies.set(row[0]!, ['', 'CLP', 'usd'].includes(currency) ? currency : 'other')
        const time = row[place(0, 'created')]
        if (time) created.push(time)
      }
      for (const [name, total] of Object.entries(judged.columns)) {
        const [table, column] = name.split('.') as [string, string]
        const at = table === 'plans' ? 0 : 1
        const cells = [rows, tierRows][at]!.map((row) => ({
          id: row[0]!,
          cell: row[place(at, column)] ?? null,
        }))
        const sumOf = (group?: string) =>
          cells
            .filter(({ id, cell }) => cell !== null && (group === undefined || currencies.get(id) === group))
            .reduce((sum, { cell }) => sum.plus(cell!), new Big(0))
        expect(sumOf().eq(total.sum), `${name}: ${total.sum}`).toBe(true)
        expect(total.empty + total.unreadable).toBe(cells.filter(({ cell }) => cell === null).length)
        const groups = new Set(cells.flatMap(({ id, cell }) => (cell === null ? [] : [currencies.get(id)!])))
        expect(new Set(Object.keys(total.byCurrency!))).toEqual(groups)
        for (const [group, sum] of Object.entries(total.byCurrency!)) expect(sumOf(group).eq(sum)).toBe(true)
      }
      const times = created.map((time) => Date.parse(time))
      const { oldest, newest } = judged.created ?? {}
      expect(oldest === undefined ? Infinity : Date.parse(oldest)).toBe(Math.min(...times))
      expect(newest === undefined ? -Infinity : Date.parse(newest)).toBe(Math.max(...times))
      const months = Map.groupBy(created, (time) => time.slice(0, 7))
      const counts = Array.from(months, ([month, { length }]) => [month, length] as const)
      expect(judged.created?.months).toEqual(counts.length === 0 ? undefined : Object.fromEntries(counts))
    }),
    { seed },
  )
})

test('records of more months than a person looks at are not counted by month, however the read was divided', () => {
  const plansOf = (years: number) =>
    Array.from({ length: years * 12 }, (_, at) => ({
      id: String(at),
      created: `${1900 + Math.floor(at / 12)}-${String((at % 12) + 1).padStart(2, '0')}-01T00:00:00Z`,
    }))
  const inParts = (records: readonly object[]) => {
    const totals = noTotals()
    for (const part of [records.slice(0, 600), records.slice(600), records.slice(0, 1)])
      addTotals(totals, createRowEncoder({ resource: plans }).encode(part).totals)
    return totals.created!
  }
  expect(Object.keys(inParts(plansOf(100)).months!)).toHaveLength(1_200)
  expect(inParts(plansOf(101))).not.toHaveProperty('months')
  const atOnce = createRowEncoder({ resource: plans }).encode(plansOf(101)).totals
  expect(atOnce.created).toEqual({ oldest: '1900-01-01T00:00:00Z', newest: '2000-12-01T00:00:00Z' })
})

test('a hidden currency divides no sums, and a hidden time shows in no total', () => {
  const record = { id: 'p1', currency: 'CLP', amount: '5', created: '2026-01-01T00:00:00Z' }
  const hash = ['plans.currency', 'plans.created']
  const hashed = createRowEncoder({ resource: plans, privacy: { hash, hashKey: 'key' } })
  expect(hashed.encode([record]).totals).toMatchObject({
    columns: { 'plans.amount': { sum: '5', empty: 0 } },
  })
  const excluded = createRowEncoder({ resource: plans, privacy: { exclude: [...hash, 'plans.amount'] } })
  const totals = excluded.encode([record]).totals
  expect(totals).not.toHaveProperty('created')
  expect(JSON.stringify(totals)).not.toMatch(/byCurrency|plans\.amount/)
})
