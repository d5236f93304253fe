/** Two records under one id: both are written, and named as the reason why the read is not proven. */
import { expect, test } from 'vitest'
import { toTimestamp } from '../../../core/billing/instants.ts'
import { start } from './drifting-list.ts'
import { listOf } from './lists.ts'
import { readInRanges } from './read-in-ranges.ts'
import { readThrough } from './read-through.ts'

/** A list in which the record at `other` has the id of the record at `place`, and perhaps its `created`. */
function repeating({ place, other, isTied = false }: { place: number; other: number; isTied?: boolean }) {
  const list = listOf()
  const one = list.now[place]!
  const at = isTied ? one.at : list.now[other]!.at
  const updated = start + (1_000 + other) * 1_000_000
  const record = { id: one.id, created: toTimestamp(at), updated: toTimestamp(updated), name: 'another' }
  list.versions = [list.now.with(other, { ...one, at, updated, record })]
  const reason = `the service has more than one record under the same id: ${one.id}`
  return { list, id: one.id, reason }
}

test.each([
  ['of different times in one window', { place: 100, other: 101 }],
  ['of different times far apart', { place: 100, other: 600 }],
  ['of one time', { place: 100, other: 101, isTied: true }],
])('two records under one id, %s, are both read, and the read is unproven', async (_, where) => {
  const { list, id, reason } = repeating(where)
  const { outcome, ids } = await readThrough({ fetchPage: list.fetchPage })
  expect(outcome).toMatchObject({ verdict: 'unproven', reasons: [reason], repeatedIds: [id], records: 700 })
  expect(ids.filter((other) => other === id)).toHaveLength(2)
})

test('the same record twice in one response is one record, and the read is proven', async () => {
  const list = listOf()
  list.versions = [list.now.flatMap((item, at) => (at % 7 === 0 ? [item, item] : [item]))]
  const { outcome, ids } = await readThrough({ fetchPage: list.fetchPage })
  expect(outcome).toMatchObject({ verdict: 'proven', reasons: [] })
  expect(outcome).not.toHaveProperty('repeatedIds')
  expect(ids).toHaveLength(700)
})

test('two records under one id in different ranges are both read', async () => {
  const { list, id, reason } = repeating({ place: 100, other: 600 })
  const { outcome, ids } = await readInRanges(
    { fetchPage: list.fetchPage },
    { divide: { count: 700, most: 4 }, namesRepeated: true },
  )
  expect(outcome).toMatchObject({ verdict: 'unproven', reasons: [reason], repeatedIds: [id] })
  expect(ids).toHaveLength(700)
})

test('two records of one time under one id are both read page by page', async () => {
  const { list, id, reason } = repeating({ place: 100, other: 101, isTied: true })
  const { outcome, ids } = await readThrough({
    fetchPage: (request) => list.fetchPage({ ...request, pageSize: Math.min(request.pageSize, 10) }),
  })
  expect(outcome.reasons).toContain(reason)
  expect(ids.filter((other) => other === id)).toHaveLength(2)
})
