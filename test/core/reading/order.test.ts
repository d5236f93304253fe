import { describe, expect, test } from 'vitest'
import { NotFound, Refused } from '../../../core/billing/errors.ts'
import { toTimestamp } from '../../../core/billing/instants.ts'
import { isSortedByUpdated } from '../../../core/reading/order.ts'
import { start } from './drifting-list.ts'

interface Row {
  id: string | number
  created: number
  updated: number
}
const day = 86_400_000_000
/** Records of which none was changed, one a day. */
const untouched = (size: number): Row[] =>
  Array.from({ length: size }, (_, at) => ({
    id: `r${String(at).padStart(4, '0')}`,
    created: start + at * day,
    updated: start + at * day,
  }))
const touched = (rows: Row[], ...places: number[]) =>
  rows.map((row, at) =>
    places.includes(at) ? { ...row, updated: start + (rows.length + places.indexOf(at)) * day } : row,
  )

/** Records of which all were changed at one time. */
const inOneUpdate = (size: number) => untouched(size).map((row) => ({ ...row, updated: start }))
/** In another order than that of the ids. */
const withMixedCreated = (row: Row, at: number) => ({ ...row, created: start + ((at * 7_919) % 1_000) * day })
const withMixedId = <T>(row: T, at: number) => ({ ...row, id: `${(at * 6_211) % 1_000}` })
/** Records that were imported one after the other, and of which one was changed since. */
const imported = touched(untouched(1_000).map(withMixedCreated), 444)

type Order = `${'-' | ''}${keyof Row}`
const toSorted = (rows: Row[], order: Order) => {
  const key = order.replace('-', '') as keyof Row
  const sorted = rows.toSorted((one, other) => (one[key] < other[key] ? -1 : one[key] > other[key] ? 1 : 0))
  return order.startsWith('-') ? sorted.toReversed() : sorted
}

const reversed = (order: Order) => (order.startsWith('-') ? order.slice(1) : `-${order}`) as Order

interface Service {
  /** Its order where `updated` is asked for. */
  up?: Order
  /** Its order where newest first is. */
  down?: Order
  cap?: number
  /** What it counts: nothing, or the records of each page, but not of the list. */
  counts?: 'nothing' | 'pages'
  isLinking?: boolean
}

async function ask(
  rows: Row[],
  { up = 'updated', down = reversed(up), cap = 100, counts, isLinking = true }: Service = {},
) {
  let requests = 0
  const isSorted = await isSortedByUpdated(({ page, pageSize, ordering }) => {
    requests++
    const size = Math.min(pageSize, cap)
    const records = toSorted(rows, ordering.startsWith('-') ? down : up)
      .slice((page - 1) * size, page * size)
      .map(({ id, created, updated }) => ({
        id,
        created: toTimestamp(created),
        updated: toTimestamp(updated),
      }))
    if (records.length === 0 && page > 1)
      throw new NotFound({ method: 'GET', path: '/', status: 404, byService: true })
    const next = isLinking && page * size < rows.length ? `/list/?page=${page + 1}` : null
    const count = { nothing: undefined, pages: records.length, list: rows.length }[counts ?? 'list']
    return Promise.resolve({ records, count, next, servedAt: undefined })
  })
  return { isSorted, requests }
}

describe('a list is sorted by `updated`', () => {
  test.each([
    ['where a page shows a record that was changed later than a newer one', touched(untouched(1_000), 5), 3],
    ['where one page holds all of it, of which some has one time', inOneUpdate(20), 1],
    ['where it is empty', [], 1],
    [
      'where only a page in the middle shows that',
      untouched(2_000).map((row, at) => (at === 777 ? { ...row, updated: row.updated + 3.5 * day } : row)),
      5,
    ],
  ])('%s', async (_, rows, requests) => {
    expect(await ask(rows)).toEqual({ isSorted: true, requests })
  })

  test('also where its pages hold less than was asked for', async () => {
    const rows = touched(untouched(1_000), 5)
    expect(await ask(rows, { cap: 30 })).toEqual({ isSorted: true, requests: 3 })
  })

  test('also where records were imported with an older `created`, and one was changed since', async () => {
    expect(await ask(imported)).toEqual({ isSorted: true, requests: 3 })
  })

  test('also where newest first is ignored, which a read notices', async () => {
    const rows = touched(untouched(1_000), 5, 800, 995)
    expect(await ask(rows, { down: '-created' })).toMatchObject({ isSorted: true })
  })
})

describe('nothing tells that a list is sorted by `updated`', () => {
  test.each<[string, Row[], Service]>([
    [
      'where it is sorted by `created`, and the changed record is on no page that is looked at',
      touched(untouched(1_000), 555),
      { up: 'created' },
    ],
    [
      'where it is sorted by `created`, and so much as one page shows the changed record',
      touched(untouched(1_000), 5),
      { up: 'created' },
    ],
    ['where it is sorted by `created`, and nothing was changed yet', untouched(1_000), { up: 'created' }],
    [
      'where it is sorted by `created` if it is asked for newest first',
      touched(untouched(1_000), 5),
      { down: '-created' },
    ],
    [
      'where it is sorted by `created`, which the ids are not',
      untouched(1_000).map(withMixedId),
      { up: 'created' },
    ],
    [
      'where all were changed at once, whatever its order',
      inOneUpdate(1_000).map(withMixedCreated).map(withMixedId),
      {},
    ],
    [
      'where records with an older `created` were imported, and it is sorted by numbers as ids',
      imported.map((row, at) => ({ ...row, id: at })),
      { up: 'id' },
    ],
    [
      'where all records were changed at once, in their order',
      untouched(300).map((row) => ({ ...row, updated: start })),
      { up: 'created' },
    ],
    [
      'where all were changed at once, and it shows its usual order, newest first, whatever is asked for',
      touched(inOneUpdate(1_000), 444),
      { up: '-created', down: '-created' },
    ],
    [
      'where all were changed at once, and it is sorted by id',
      touched(inOneUpdate(1_000).map(withMixedCreated), 444),
      { up: 'id' },
    ],
    ['where records with an older `created` were imported, and it is sorted by id', imported, { up: 'id' }],
    [
      'where records were imported newest first, and it is sorted by `created` newest first',
      touched(
        untouched(1_000).map((row) => ({ ...row, created: 2 * start - row.created })),
        444,
      ),
      { up: '-created' },
    ],
    [
      'where it shows one order whatever is asked for, of which no field tells',
      imported.map(withMixedId),
      { down: 'updated' },
    ],
    [
      'where it is sorted by `created`, and does not count',
      touched(untouched(1_000), 444),
      { up: 'created', counts: 'nothing' },
    ],
    [
      'where it is sorted by `created`, and counts what a page shows',
      touched(untouched(1_000), 444),
      { up: 'created', counts: 'pages' },
    ],
    [
      'where it is sorted by `created`, its pages hold less than was asked for, and it links to none',
      touched(untouched(90), 55),
      { up: 'created', cap: 30, isLinking: false },
    ],
    [
      'where it is sorted by `created`, and its pages hold less than was asked for',
      touched(untouched(90), 55),
      { up: 'created', cap: 30 },
    ],
    ['where one page shows that it is not', touched(untouched(20), 5), { up: 'created' }],
  ])('%s', async (_, rows, service) => {
    expect(await ask(rows, service)).toMatchObject({ isSorted: false })
  })
})

test('a service that refuses pages that far down is not asked for what changed', async () => {
  const refused = new Refused({
    method: 'GET',
    path: '/',
    status: 400,
    byService: true,
    messages: ['page: at most 5'],
  })
  const records = untouched(100).map(({ id }) => ({ id }))
  const isSorted = await isSortedByUpdated(({ page }) =>
    page > 5
      ? Promise.reject(refused)
      : Promise.resolve({ records, count: 1_000, next: '/list/?page=2', servedAt: undefined }),
  )
  expect(isSorted).toBe(false)
})
