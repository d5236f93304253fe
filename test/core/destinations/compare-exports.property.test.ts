/**
 * Months of changes to a list, in CSV and Parquet: the counts, the sums and `changes.csv` are those of a model.
 *
 * COMPARE_RUNS=10000 makes a soak of it, COMPARE_SEED another one.
 */
import * as fc from 'fast-check'
import { parse } from 'csv-parse/sync'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { compareExports } from '../../../core/destinations/files/compare.ts'
import { createCsvDestination } from '../../../core/destinations/files/csv.ts'
import { createParquetDestination } from '../../../core/destinations/files/parquet.ts'
import { DecimalSum } from '../../../core/tables/decimal-sum.ts'
import { createWorkplace, facts } from './publication.ts'

const numRuns = Number(process.env['COMPARE_RUNS'] ?? 60)
const seed = Number(process.env['COMPARE_SEED'] ?? 20_261_126)

const digits = (least: number, most: number) =>
  fc.stringMatching(new RegExp(`^[1-9][0-9]{${least - 1},${most - 1}}$`))
const amount = fc.oneof(
  fc.constant('null'),
  fc.integer({ min: -100_000, max: 100_000 }).map((cents) => (cents / 100).toFixed(2)),
  fc.tuple(digits(20, 40), digits(1, 20)).map(([whole, fraction]) => `-${whole}.${fraction}`),
  fc.tuple(digits(1, 5), fc.integer({ min: -9, max: 9 })).map(([number, power]) => `${number}e${power}`),
)
const plan = fc.record({
  amount,
  currency: fc.constantFrom('null', '"USD"', '"CLP"', '"no currency"'),
  tiers: fc.array(amount, { maxLength: 2 }),
})
type Plan = typeof plan extends fc.Arbitrary<infer T> ? T : never

const month = fc.array(
  fc.record({
    before: fc.option(plan, { nil: undefined }),
    after: fc.option(plan, { nil: undefined }),
    stays: fc.boolean(),
  }),
  { maxLength: 12 },
)

const toJson = ({ amount, currency, tiers }: Plan, at: number) =>
  `{"id":"p${at}","created":"2025-01-01T00:00:00Z","amount":${amount},"currency":${currency},"tiers":[${tiers
    .map((tier) => `{"amount":${tier}}`)
    .join()}]}`

/** The sum of what a column holds of each currency. */
function sumsOf(plans: readonly Plan[], amountsOf: (plan: Plan) => readonly string[]) {
  const sums = new Map<string, DecimalSum>()
  for (const one of plans) {
    const text = one.currency === 'null' ? '' : one.currency.slice(1, -1)
    const group = /^([A-Z]{3})?$/.test(text) ? text : 'other'
    for (const amount of amountsOf(one).filter((text) => text !== 'null'))
      sums.set(group, (sums.get(group) ?? new DecimalSum()).add(amount))
  }
  return (group: string) => String(sums.get(group) ?? '0')
}

const zero = (...terms: string[]) => {
  const sum = new DecimalSum()
  for (const term of terms) sum.add(term)
  return /^-?[0.]+$/.test(sum.toString())
}
const minus = (decimal: string) => (decimal.startsWith('-') ? decimal.slice(1) : `-${decimal}`)

const form = (amount: string) =>
  amount === 'null'
    ? ''
    : new DecimalSum()
        .add(amount)
        .toString()
        .replace(/(\.\d*?)0+$/, '$1')
        .replace(/\.$/, '')

test(
  `the months of seed ${seed} balance to the last digit (${numRuns})`,
  { timeout: 60_000 + numRuns * 2_000 },
  async () => {
    const workplace = await createWorkplace()
    const out = join(workplace.folder, 'changes.csv')
    let made = 0
    const publish = async (month: number, records: readonly string[], to: 'csv' | 'parquet') => {
      const destination = to === 'csv' ? createCsvDestination() : createParquetDestination()
      const times = {
        startedAt: `2026-0${month}-01T03:00:00.000Z`,
        completeThrough: `2026-0${month}-01T02:59:00Z`,
      }
      const more = { run: `run-${made++}`, facts: { ...facts, ...times } }
      const { location, manifest } = await destination.publish(
        await workplace.toPublication('plans', [records], more),
      )
      return { folder: location, manifest }
    }
    try {
      await fc.assert(
        fc.asyncProperty(
          month,
          fc.constantFrom('csv', 'parquet'),
          fc.constantFrom('csv', 'parquet'),
          async (all, one, other) => {
            const list = all.map(({ before, after, stays }, at) => ({
              id: `p${at}`,
              at,
              before,
              after: stays ? before : after,
            }))
            const side = (name: 'before' | 'after') =>
              list.flatMap((record) => (record[name] === undefined ? [] : [toJson(record[name], record.at)]))
            const older = await publish(1, side('before'), one)
            const newer = await publish(2, side('after'), other)
            const { records, sums, verdict } = await compareExports({ older, newer, out })
            const lines: string[][] = parse(await readFile(out), { from: 2 })
            await rm(out)
            for (const { folder } of [older, newer]) await rm(folder, { recursive: true })
            expect(verdict).toBe('proven')

            const fresh = list.filter(({ before, after }) => before === undefined && after !== undefined)
            const gone = list.filter(({ before, after }) => before !== undefined && after === undefined)
            const both = list.flatMap(({ id, before, after }) =>
              before && after ? [{ id, before, after }] : [],
            )
            const shape = ({ amount, currency, tiers }: Plan) =>
              JSON.stringify([form(amount), currency, tiers.map(form)])
            const changed = both.filter(({ before, after }) => shape(before) !== shape(after))
            expect(records).toEqual({
              opening: side('before').length,
              new: fresh.length,
              gone: gone.length,
              changed: changed.length,
              unchanged: both.length - changed.length,
              closing: side('after').length,
            })
            const named = (change: string) => [
              ...new Set(lines.filter(([one]) => one === change).map(([, id]) => id)),
            ]
            expect([named('new'), named('gone'), named('changed')]).toEqual(
              [fresh, gone, changed].map((some) => some.map(({ id }) => id).toSorted()),
            )
            for (const [column, amountsOf] of [
              ['plans.amount', ({ amount }: Plan) => [amount]],
              ['plan_tiers.amount', ({ tiers }: Plan) => tiers],
            ] as const) {
              const of = (plans: readonly (Plan | undefined)[]) =>
                sumsOf(
                  plans.filter((one) => one !== undefined),
                  amountsOf,
                )
              const model = {
                opening: of(list.map(({ before }) => before)),
                new: of(fresh.map(({ after }) => after)),
                gone: of(gone.map(({ before }) => before)),
                before: of(changed.map(({ before }) => before)),
                after: of(changed.map(({ after }) => after)),
                closing: of(list.map(({ after }) => after)),
              }
              for (const sum of sums.filter((one) => one.column === column)) {
                const group = sum.currency!
                for (const name of ['opening', 'new', 'gone', 'closing'] as const)
                  expect(zero(sum[name], minus(model[name](group))), `${name} ${column} ${group}`).toBe(true)
                expect(zero(sum.changed, model.before(group), minus(model.after(group)))).toBe(true)
                expect(zero(sum.opening, sum.new, minus(sum.gone), sum.changed, minus(sum.closing))).toBe(
                  true,
                )
              }
            }
          },
        ),
        { numRuns, seed },
      )
    } finally {
      await workplace.close()
    }
  },
)
