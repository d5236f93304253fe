/**
 * Months of changes to a list, in CSV, for Excel and in Parquet: the counts, the sums and `changes.csv` are those of a model.
 *
 * COMPARE_RUNS=1000 makes a soak of it, COMPARE_SEED another one.
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

// Each round takes a third of a second, with one record or a hundred: few rounds of many records.
const numRuns = Number(process.env['COMPARE_RUNS'] ?? 8)
const seed = Number(process.env['COMPARE_SEED'] ?? 20_261_126)

const digits = (least: number, most: number) =>
  fc.stringMatching(new RegExp(`^[1-9][0-9]{${least - 1},${most - 1}}$`))
const amount = fc.oneof(
  fc.constantFrom('null', '0', '-0'),
  fc.integer({ min: -100_000, max: 100_000 }).map((cents) => (cents / 100).toFixed(2)),
  fc.tuple(digits(20, 40), digits(1, 20)).map(([whole, fraction]) => `-${whole}.${fraction}`),
  fc.tuple(digits(1, 5), fc.integer({ min: -9, max: 9 })).map(([number, power]) => `${number}e${power}`),
)
const text = fc.constantFrom('null', '""', '"a"', '"=1"', String.raw`"x\"\n,y"`)
const plan = fc.record({
  amount,
  currency: fc.constantFrom('null', '"USD"', '"CLP"', '"no currency"'),
  name: text,
  /** What has no column; DuckDB does not read half a pair of surrogates as JSON. */
  more: fc.constantFrom('1', '1.0', '"a"', String.raw`"\ud800"`),
  tiers: fc.array(fc.record({ amount, scheme: text }), { maxLength: 2 }),
})
type Plan = typeof plan extends fc.Arbitrary<infer T> ? T : never

/** The same number in another form. */
function rewritten(amount: string): string {
  if (amount === 'null') return amount
  if (amount.includes('e')) return amount.replace('e', '.0e')
  const [whole = '', fraction = ''] = amount.split('.')
  return fraction.endsWith('5')
    ? `${(whole + fraction).replace(/^(-?)0+(?=\d)/, '$1')}e-${fraction.length}`
    : `${whole}.${fraction}${'0'.repeat(40)}`
}

/** Most records change in one place, so that nothing else shows a change that is missed. */
const record = fc
  .record({
    before: plan,
    other: plan,
    change: fc.constantFrom(
      ...(['gone', 'new', 'all', 'none', 'rewritten'] as const),
      ...(['amount', 'currency', 'name', 'more', 'tiers'] as const),
    ),
  })
  .map(({ before, other, change }): { before?: Plan; after?: Plan } => {
    if (change === 'gone') return { before }
    if (change === 'new') return { after: other }
    if (change === 'all') return { before, after: other }
    if (change === 'none') return { before, after: before }
    if (change !== 'rewritten') return { before, after: { ...before, [change]: other[change] } }
    const tiers = before.tiers.map((tier) => ({ ...tier, amount: rewritten(tier.amount) }))
    return { before, after: { ...before, amount: rewritten(before.amount), tiers } }
  })
const month = fc.array(record, { maxLength: 100, size: 'max' })

const toJson = ({ amount, currency, name, more, tiers }: Plan, at: number) =>
  `{"id":"p${at}","created":"2025-01-01T00:00:00Z","amount":${amount},"currency":${currency},"name":${name},"more":${more},"tiers":[${tiers
    .map((tier) => `{"amount":${tier.amount},"unit_scheme":${tier.scheme}}`)
    .join()}]}`

/** What is compared of a plan, by table, position and field. */
function cellsOf(plan: Plan): Map<string, string> {
  const rows = plan.tiers.flatMap(({ amount, scheme }, at) => [
    [`plan_tiers ${at + 1} position`, 'its own'],
    [`plan_tiers ${at + 1} amount`, form(amount)],
    [`plan_tiers ${at + 1} unit_scheme`, scheme],
  ])
  return new Map(
    [
      ['plans  amount', form(plan.amount)],
      ['plans  currency', plan.currency],
      ['plans  name', plan.name],
      ['plans  _extra', plan.more],
      ...rows,
    ].filter(([, cell]) => cell !== 'null') as [string, string][],
  )
}

function differencesOf(before: Plan, after: Plan): string[] {
  const [old, now] = [cellsOf(before), cellsOf(after)]
  return [...new Set([...old.keys(), ...now.keys()])].filter((cell) => old.get(cell) !== now.get(cell))
}

const groupOf = ({ currency }: Plan) => {
  const text = currency === 'null' ? '' : currency.slice(1, -1)
  return /^([A-Z]{3})?$/.test(text) ? text : 'other'
}

/** The sum of what a column holds of each currency. */
function sumsOf(plans: readonly Plan[], amountsOf: (plan: Plan) => readonly string[]) {
  const sums = new Map<string, DecimalSum>()
  for (const one of plans)
    for (const amount of amountsOf(one).filter((text) => text !== 'null'))
      sums.set(groupOf(one), (sums.get(groupOf(one)) ?? new DecimalSum()).add(amount))
  return sums
}

const zero = (...terms: string[]) => {
  const sum = new DecimalSum()
  for (const term of terms) sum.add(term)
  return /^-?[0.]+$/.test(sum.toString())
}
const minus = (decimal: string) => (decimal.startsWith('-') ? decimal.slice(1) : `-${decimal}`)

const form = (amount: string) =>
  amount === 'null'
    ? amount
    : new DecimalSum()
        .add(amount)
        .toString()
        .replace(/(\.\d*?)0+$/, '$1')
        .replace(/\.$/, '')

const formats = ['csv', 'excel', 'parquet'] as const

test(
  `the months of seed ${seed} balance to the last digit (${numRuns})`,
  { timeout: 60_000 + numRuns * 6_000 },
  async () => {
    const workplace = await createWorkplace()
    const out = join(workplace.folder, 'changes.csv')
    let made = 0
    const publish = async (month: number, records: readonly string[], to: (typeof formats)[number]) => {
      const destination = to === 'parquet' ? createParquetDestination() : createCsvDestination()
      const times = {
        startedAt: `2026-0${month}-01T03:00:00.000Z`,
        completeThrough: `2026-0${month}-01T02:59:00Z`,
      }
      const more = { run: `run-${made++}`, facts: { ...facts, ...times }, forExcel: to === 'excel' }
      const { location, manifest } = await destination.publish(
        await workplace.toPublication('plans', [records], more),
      )
      return { folder: location, manifest }
    }
    try {
      await fc.assert(
        fc.asyncProperty(
          month,
          fc.constantFrom(...formats),
          fc.constantFrom(...formats),
          async (all, one, other) => {
            const list = all.map(({ before, after }, at) => ({ id: `p${at}`, at, before, after }))
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
            const differences = both.flatMap(({ id, before, after }) =>
              differencesOf(before, after).map((cell) => `${id} ${cell}`),
            )
            const changed = both.filter(({ before, after }) => differencesOf(before, after).length > 0)
            expect(records).toEqual({
              opening: side('before').length,
              new: fresh.length,
              gone: gone.length,
              changed: changed.length,
              unchanged: both.length - changed.length,
              closing: side('after').length,
            })
            const named = (change: string) =>
              lines
                .filter(([one]) => one === change)
                .map(([, id = '', table, position, field]) =>
                  change === 'changed' ? `${id} ${table} ${position} ${field}` : id,
                )
            expect([named('new'), named('gone')]).toEqual(
              [fresh, gone].map((some) => some.map(({ id }) => id).toSorted()),
            )
            expect(named('changed').toSorted()).toEqual(differences.toSorted())
            for (const [column, amountsOf] of [
              ['plans.amount', ({ amount }: Plan) => [amount]],
              ['plan_tiers.amount', ({ tiers }: Plan) => tiers.map((tier) => tier.amount)],
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
              const groups = [...model.opening.keys(), ...model.closing.keys()]
              const found = sums.filter((one) => one.column === column)
              expect(found.map(({ currency }) => currency)).toEqual([...new Set(groups)].toSorted())
              for (const sum of found) {
                const part = (name: keyof typeof model) => String(model[name].get(sum.currency!) ?? '0')
                for (const name of ['opening', 'new', 'gone', 'closing'] as const)
                  expect(zero(sum[name], minus(part(name))), `${name} ${column} ${sum.currency}`).toBe(true)
                expect(zero(sum.changed, part('before'), minus(part('after')))).toBe(true)
                expect(zero(sum.opening, sum.new, minus(sum.gone), sum.changed, minus(sum.closing))).toBe(
                  true,
                )
              }
            }
          },
        ),
        {
          numRuns,
          seed,
          // Also of the search for a smaller example.
          interruptAfterTimeLimit: 30_000 + numRuns * 5_000,
          markInterruptAsFailure: true,
        },
      )
    } finally {
      await workplace.close()
    }
  },
)
