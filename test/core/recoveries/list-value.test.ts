import { expect, test } from 'vitest'
import { parseLossless } from '../../../core/billing/lossless-json.ts'
import type { Body } from '../../../core/billing/client.ts'
import {
  addListValue,
  addPrices,
  noListValues,
  type PlanPrices,
  toListValue,
  toValueTables,
} from '../../../core/recoveries/list-value.ts'

const record = (json: string) => parseLossless(json) as Body

const plans: PlanPrices = { prices: new Map(), otherwise: 'a plan is not in the list of plans' }
addPrices(
  plans.prices,
  [
    '{"id":"plain","currency":"CLP","amount":1500.50,"tiers":[]}',
    '{"id":"long","currency":"CLP","amount":12345678901234567.89,"tiers":null}',
    '{"id":"power","currency":"CLP","amount":1e3}',
    '{"id":"text","currency":"USD","amount":"0.10"}',
    '{"id":"tiers","currency":"USD","amount":2,"tiers":[{"amount":1}]}',
    '{"id":"free","amount":null,"currency":"CLP"}',
    '{"id":"bare","amount":5}',
    '{"id":"name","amount":5,"currency":"Empresa"}',
    '{"id":"huge","amount":1e999,"currency":"CLP"}',
    '{"id":"twice","amount":5,"currency":"CLP"}',
    '{"id":"twice","amount":6,"currency":"CLP"}',
  ].map(record),
)

const valueOf = (lines: string, more = '') => toListValue(record(`{"lines":${lines}${more}}`), plans)

test('the list value of a subscription adds up plan amount times quantity, exactly and by currency', () => {
  expect(
    valueOf('[{"plan":"plain","quantity":3},{"plan":"long","quantity":7},{"plan":"text","quantity":3}]'),
  ).toEqual({ amounts: { CLP: '86419752308646476.73', USD: '0.30' } })
  expect(valueOf('[{"plan":"power","quantity":2},{"plan":"plain","quantity":0}]')).toEqual({
    amounts: { CLP: '2000.00' },
  })
})

test.each([
  ['tiers', '[{"plan":"tiers","quantity":1}]', ''],
  ['a coupon of a line', '[{"plan":"plain","quantity":1},{"plan":"plain","quantity":1,"coupon":"c"}]', ''],
  ['a coupon', '[{"plan":"plain","quantity":1}]', ',"coupon":"c"'],
  ['addons', '[{"plan":"plain","quantity":1}]', ',"addons":[{"addon":"a"}]'],
])('a subscription with %s is marked, because these are not computed', (_, lines, more) => {
  expect(valueOf(lines, more)).toMatchObject({ hasMore: true })
})

test.each([
  ['[]', 'it has no lines'],
  ['null', 'it has no lines'],
  ['[{"plan":"plain"}]', 'a line has no plan or no quantity'],
  ['[{"quantity":1}]', 'a line has no plan or no quantity'],
  ['[null]', 'a line has no plan or no quantity'],
  ['[{"plan":"plain","quantity":1},{"plan":"gone","quantity":1}]', 'a plan is not in the list of plans'],
  ['[{"plan":"free","quantity":1}]', 'a plan has no amount'],
  ['[{"plan":"huge","quantity":1}]', 'a plan has no amount'],
  ['[{"plan":"bare","quantity":1}]', 'a plan has no currency'],
  ['[{"plan":"name","quantity":1}]', 'a plan has no currency'],
  ['[{"plan":"twice","quantity":1}]', 'several plans have the same id'],
])('a subscription with the lines %s is not valued: %s', (lines, notValued) => {
  expect(valueOf(lines)).toEqual({ notValued })
})

test('the tables show the sums by reason and currency, and count what is not valued', () => {
  const [toResume, recovered] = [noListValues(), noListValues()]
  const add = (reason: string, lines: string, isRecovered: boolean) => {
    addListValue(toResume, reason, valueOf(lines))
    if (isRecovered) addListValue(recovered, reason, valueOf(lines))
  }
  add('gateway_issue', '[{"plan":"plain","quantity":1000},{"plan":"tiers","quantity":1}]', true)
  add('gateway_issue', '[{"plan":"plain","quantity":1}]', false)
  add('', '[{"plan":"text","quantity":1}]', false)
  add('gateway_issue', '[{"plan":"gone","quantity":1}]', false)
  expect(toValueTables(toResume, recovered)).toEqual([
    {
      title:
        'List value per cycle (list price, not invoiced amounts; tiers, coupons and addons of 1 subscription are not computed)',
      head: ['reason', 'currency', 'to resume', 'recovered'],
      rows: [
        ['gateway_issue', 'CLP', '1,502,000.50', '1,500,500.00'],
        ['gateway_issue', 'USD', '2', '2'],
        ['no reason', 'USD', '0.10', '0'],
      ],
    },
    {
      title: 'Not valued',
      head: ['', 'to resume', 'recovered'],
      rows: [['because a plan is not in the list of plans', 1, 0]],
    },
  ])
  expect(toValueTables(toResume)[0]).toMatchObject({ head: ['reason', 'currency', 'to resume'] })
})
