import { expect, test } from 'vitest'
import { toPage } from '../../workflows/write-run/operator.ts'

const ask = (listed: number, count: number, page: number) => {
  const rows = Array.from({ length: listed }, (_, row) => ({ row }))
  const result = { rows: { parked: rows }, counts: { parked: count }, files: { parked: 'parked.csv' } }
  return toPage({
    operator: { result },
    progress: { run: 'r' },
    question: { outcome: 'parked', page },
  } as unknown as Parameters<typeof toPage>[0])
}

test('the query says how many rows it cannot list, and that the files have all of them', () => {
  const last = ask(500, 2_000, 5)
  expect(last).toMatchObject({ count: 2_000, page: 5, pages: 5 })
  expect(last).toHaveProperty(
    'note',
    'Of 2000 rows, the first 500 can be listed here; the files have all of them.',
  )
})

test('the query has no note where it lists every row', () => {
  expect(ask(250, 250, 3)).toMatchObject({ count: 250, pages: 3, rows: { length: 50 } })
  expect(ask(250, 250, 3)).not.toHaveProperty('note')
})

test('the query has no rows before a run has counted any', () => {
  const page = toPage({
    operator: {},
    progress: { run: 'r' },
    question: { outcome: 'parked' },
  } as unknown as Parameters<typeof toPage>[0])
  expect(page).toMatchObject({ count: 0, page: 1, pages: 1, rows: [] })
})
