import { describe, expect, test } from 'vitest'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { parseBody } from '../../../core/changes/body.ts'
import { bodiesOf, fileOf, problemsOf, stage } from './csv-file.ts'

const head = 'supplier;document;number;date'
const start = (number: number) => `"supplier":"s","document":7,"number":${number},"date":"2026-03-25"`
const both = '"lines":[{"name":"a","amount":1.5},{"name":"b","amount":2}]'

describe('the lines of a retention may stand', () => {
  test('in columns with numbers, of which some may be empty', async () => {
    const path = await fileOf(
      `${head};lines.1.name;lines.1.amount;lines.2.name;lines.2.amount\n` +
        's;7;1;2026-03-25;a;1,5;b;2\ns;7;2;2026-03-25;;;b;2\n',
    )
    expect(await bodiesOf({ kind: 'retentions', path })).toEqual([
      `{${start(1)},${both}}`,
      `{${start(2)},"lines":[{"name":"b","amount":2}]}`,
    ])
  })

  test('in one cell, as JSON', async () => {
    const lines = '[{"name":"a","amount":1.50,"id":9,"total":3},{"name":"b","amount":"2"}]'
    const path = await fileOf(`${head};lines\ns;7;1;2026-03-25;"${lines.replaceAll('"', '""')}"\n`)
    expect(await bodiesOf({ kind: 'retentions', path })).toEqual([
      `{${start(1)},"lines":[{"name":"a","amount":1.50},{"name":"b","amount":2}]}`,
    ])
  })

  test.each(['lines', 'line'])('in consecutive rows with a %s each', async (list) => {
    const path = await fileOf(
      `${head};total;${list}.name;${list}.amount\n` +
        's;7;1;2026-03-25;3,5;a;1,5\ns;7;1;;;b;2\n\ns;7;2;2026-03-25;;c;\ns;7;3;2026-03-25;;d;\n',
    )
    const rows = await stage({ kind: 'retentions', path })
    expect(rows.map(({ row }) => row)).toEqual([2, 5, 6])
    expect(rows[0]?.body).toBe(`{${start(1)},"total":3.5,${both}}`)
    expect(rows[0]?.key).toBe('["s","7","1"]')
    expect(changeKinds['create-retention'].traitsOf(parseBody(rows[0] ?? { body: '{}' }))).toEqual({
      signature: '7 amount date document lines name number supplier total',
      lines: 2,
      amount: '3.5',
    })
  })
})

describe('lines are refused', () => {
  test('where two ways are mixed', async () => {
    const path = await fileOf(`${head};lines.1.name;lines.amount\ns;7;1;2026-03-25;a;1\n`)
    expect(await problemsOf({ kind: 'retentions', path })).toEqual([
      'row 1, lines.amount: gives lines in another way than lines.1.name. Use one way only',
    ])
  })

  test('where rows of one retention don’t agree, or don’t follow each other', async () => {
    const path = await fileOf(
      `${head};lines.name\ns;7;1;2026-03-25;a\ns;7;1;2026-03-26;b\ns;7;2;2026-03-25;a\ns;7;1;2026-03-25;c\n`,
    )
    expect(await problemsOf({ kind: 'retentions', path })).toEqual([
      'row 3, date: 2026-03-26 differs from row 2 (2026-03-25), but both rows belong to one change',
      'row 5, supplier, document, number: is the same retention as row 2. Keep the rows of one retention together',
    ])
  })

  test.each([
    ['{', 'is not valid JSON'],
    ['{"name":"a"}', 'is not a list: [{...}, {...}]'],
    ['["a"]', 'is wrong: 1 is not an object: {...}'],
    ['[{"nam":"a"}]', 'is wrong: 1.nam is not a field; did you mean name?'],
    ['[{"name":"a"},{"amount":"1,5"}]', 'is wrong: 2.amount is not a number'],
    ['[{"amount":1e5}]', 'is wrong: 1.amount is not a number'],
    ['[{"exempt":"true"}]', 'is wrong: 1.exempt is neither true nor false'],
    ['[{"discount_scheme":"€"}]', 'is wrong: 1.discount_scheme is not one of %, $'],
    ['[{"name":null}]', 'is wrong: 1.name must not be null'],
    ['[{"name":1}]', 'is wrong: 1.name is not text'],
    ['[]', 'is required for every retention, but empty'],
  ])('as JSON where they are %s', async (lines, message) => {
    const path = await fileOf(`${head};lines\ns;7;1;2026-03-25;"${lines.replaceAll('"', '""')}"\n`)
    expect(await problemsOf({ kind: 'retentions', path })).toEqual([expect.stringContaining(message)])
  })
})

test('lists of a subscription are given the same ways, but not as rows', async () => {
  const path = await fileOf(
    'id;lines.1.plan;lines.1.quantity;addons.1.rates.2.percentage;references\ns;p;2;0,5;"[]"\n',
  )
  expect(await bodiesOf({ kind: 'update-subscriptions', path })).toEqual([
    '{"id":"s","lines":[{"plan":"p","quantity":2}],"addons":[{"rates":[{"percentage":0.5}]}],"references":[]}',
  ])
  const rows = await fileOf('id;lines.plan\ns;p\n')
  expect(await problemsOf({ kind: 'update-subscriptions', path: rows })).toEqual([
    expect.stringMatching(/^row 1, lines.plan: is not a field of subscriptions/),
    expect.stringMatching(/nothing to change/),
  ])
})
