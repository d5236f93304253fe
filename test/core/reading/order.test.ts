import { describe, expect, test } from 'vitest'
import { NotFound } from '../../../core/billing/errors.ts'
import { toTimestamp } from '../../../core/reading/instant.ts'
import { isSortedByUpdated } from '../../../core/reading/order.ts'
import { start } from './drifting-list.ts'

interface Row {
  created: number
  updated: number
}
const day = 86_400_000_000
/** Records of which none was changed, one a day. */
const untouched = (size: number): Row[] =>
  Array.from({ length: size }, (_, at) => ({ created: start + at * day, updated: start + at * day }))
const touched = (rows: Row[], ...places: number[]) =>
  rows.map((row, at) =>
    places.includes(at) ? { ...row, updated: start + (rows.length + places.indexOf(at)) * day } : row,
  )

/** Asks a service that sorts by `by` where `updated` is asked for, and by `desc` where newest first. */
async function ask(rows: Row[], by: keyof Row = 'updated', desc = by) {
  let requests = 0
  const isSorted = await isSortedByUpdated(({ page, pageSize, ordering }) => {
    requests++
    const key = ordering.startsWith('-') ? desc : by
    const sorted = rows.toSorted((one, other) => one[key] - other[key])
    if (ordering.startsWith('-')) sorted.reverse()
    const records = sorted.slice((page - 1) * pageSize, page * pageSize).map(({ created, updated }) => ({
      created: toTimestamp(created),
      updated: toTimestamp(updated),
    }))
    if (records.length === 0 && page > 1)
      throw new NotFound({ method: 'GET', path: '/', status: 404, byService: true })
    return Promise.resolve({ records, count: rows.length, next: null, servedAt: undefined })
  })
  return { isSorted, requests }
}

describe('a list is sorted by `updated`', () => {
  test.each([
    ['where a page shows a record that was changed later than a newer one', touched(untouched(1_000), 5), 3],
    ['where one page holds all of it', untouched(20), 1],
    ['where it is empty', [], 1],
    [
      'where only a page in the middle shows that',
      untouched(2_000).map((row, at) => (at === 777 ? { ...row, updated: row.updated + 3.5 * day } : row)),
      5,
    ],
  ])('%s', async (_, rows, requests) => {
    expect(await ask(rows)).toEqual({ isSorted: true, requests })
  })

  test('also where newest first is ignored, which a read notices', async () => {
    const rows = touched(untouched(1_000), 5, 800, 995)
    expect(await ask(rows, 'updated', 'created')).toMatchObject({ isSorted: true })
  })
})

describe('nothing tells that a list is sorted by `updated`', () => {
  test.each<[string, Row[], keyof Row, (keyof Row)?]>([
    [
      'where it is sorted by `created`, and the changed record is on no page that is looked at',
      touched(untouched(1_000), 555),
      'created',
    ],
    [
      'where it is sorted by `created`, and so much as one page shows the changed record',
      touched(untouched(1_000), 5),
      'created',
    ],
    ['where it is sorted by `created`, and nothing was changed yet', untouched(1_000), 'created'],
    [
      'where it is sorted by `created` if it is asked for newest first',
      touched(untouched(1_000), 5),
      'updated',
      'created',
    ],
    ['where nothing was ever changed', untouched(1_000), 'updated'],
    [
      'where all records were changed at once, in their order',
      untouched(300).map((row) => ({ ...row, updated: start })),
      'created',
    ],
    ['where one page shows that it is not', touched(untouched(20), 5), 'created'],
  ])('%s', async (_, rows, by, desc) => {
    expect(await ask(rows, by, desc)).toMatchObject({ isSorted: false })
  })
})
