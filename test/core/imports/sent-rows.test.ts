import { expect, test } from 'vitest'
import { describeSentRows } from '../../../core/imports/sent-rows.ts'
import type { Ledger } from '../../../core/state/ledger/ledger.ts'

const body = {
  supplier: '76.1-K',
  document: 7,
  number: 201,
  date: '2026-03-05',
  lines: [{ name: 'Honorarios', amount: 1500.1 }],
}

async function describe(answer: string | null, state = 'done') {
  const rows = [
    { row: 2, state, outcome: null, sentAt: 1, body: JSON.stringify(body), answer, error: null },
    { row: 3, state: 'staged', outcome: null, sentAt: null, body: '{}', answer: null, error: null },
  ]
  const ledger = {
    rows: async function* () {
      yield* rows
    },
  } as unknown as Ledger
  return await describeSentRows({ ledger, plan: { run: 'run', kind: 'retentions' }, most: 10 })
}

test('a row that was sent is shown with each of its fields, and what the service changed or added is marked', async () => {
  const answer = {
    ...body,
    id: 'ret_9',
    date: '2026-03-06',
    lines: [{ id: 'line_1', name: 'Honorarios', amount: 1500.2 }],
    test_mode: false,
    customer: null,
  }
  expect((await describe(JSON.stringify(answer))).split('\n')).toEqual([
    'Row 2: done',
    '  supplier        76.1-K',
    '  document        7',
    '  number          201',
    '  lines.1.name    Honorarios',
    '* date            2026-03-05  stored as 2026-03-06',
    '* lines.1.amount  1500.1  stored as 1500.2',
    '+ id              ret_9',
    '+ test_mode       false',
  ])
})

test('many fields that the service added are counted', async () => {
  const added = Object.fromEntries(Array.from({ length: 8 }, (_, at) => [`extra_${at}`, at]))
  const lines = (await describe(JSON.stringify({ ...body, document: 8, ...added }))).split('\n')
  expect(lines.map((line) => line.replaceAll(/ +/g, ' '))).toContain('* document 7 stored as 8')
  expect(lines.filter((line) => line.startsWith('+'))).toHaveLength(5)
  expect(lines.at(-1)).toBe('  and 3 more fields of the service')
})

test('a row without an answer shows what was sent alone', async () => {
  expect((await describe(null, 'unknown')).split('\n').slice(0, 2)).toEqual([
    'Row 2: unknown',
    '  supplier        76.1-K',
  ])
})

test('a list that the service stored with other items is marked as a whole', async () => {
  const answer = JSON.stringify({ ...body, lines: [] })
  expect(await describe(answer)).toContain(`* lines           ${JSON.stringify(body.lines)}  stored as []`)
})
