import { describe, expect, test } from 'vitest'
import type { ListPage } from '../../../core/billing/reply.ts'
import { toTimestamp } from '../../../core/billing/instants.ts'
import type { FetchPage } from '../../../core/reading/range-state.ts'
import { createRandom, start } from './drifting-list.ts'
import { readThrough } from './read-through.ts'

const second = 1_000_000

/** A list whose records are updated while it is read: `touch` moves one to the top of `updated`. */
function createList(size: number) {
  const updated = Array.from({ length: size }, (_, at) => start + at * second)
  let now = start + size * second
  const fetchPage: FetchPage = ({ ordering = '', page, pageSize }) => {
    const places = [...updated.keys()].toSorted((one, other) => (updated[one] ?? 0) - (updated[other] ?? 0))
    if (ordering.startsWith('-')) places.reverse()
    const records = places.slice((page - 1) * pageSize, page * pageSize).map((at) => ({
      id: `r${at}`,
      created: toTimestamp(start),
      ...(ordering.endsWith('updated') && { updated: toTimestamp(updated[at] ?? NaN) }),
    }))
    const next = page * pageSize < size ? `/list/?page=${page + 1}` : null
    return Promise.resolve<ListPage>({ records, count: size, next, servedAt: undefined })
  }
  return {
    fetchPage,
    updated,
    touch: (at: number) => {
      now += second
      updated[at] = now
    },
  }
}

describe('reading what was updated since', () => {
  test('takes all of it, and costs no more than its part of the list', async () => {
    const list = createList(5000)
    const { outcome, ids } = await readThrough({ ...list, updatedSince: (start + 4000 * second) / 1000 })
    expect(outcome).toMatchObject({ verdict: 'proven', ordering: 'updated' })
    for (let at = 4000; at < 5000; at++) expect(ids).toContain(`r${at}`)
    expect(ids.length).toBeLessThan(1100)
    expect(outcome.requests).toBeLessThan(20)
  })

  test('misses nothing whose update did not change in the meantime, however many others move to the top', async () => {
    for (let seed = 1; seed <= 5; seed++) {
      const random = createRandom(seed)
      const list = createList(3000)
      const touched = new Set<number>()
      const fetchPage: FetchPage = (request) => {
        for (let times = 0; times < 5; times++) {
          const at = Math.floor(random() * 3000)
          touched.add(at)
          list.touch(at)
        }
        return list.fetchPage(request)
      }
      const { outcome, ids } = await readThrough({
        fetchPage,
        updatedSince: (start + 1000 * second) / 1000,
      })
      expect(outcome.reasons, `seed ${seed}`).toEqual([])
      const taken = new Set(ids)
      for (let at = 1000; at < 3000; at++)
        if (!touched.has(at)) expect(taken, `seed ${seed}`).toContain(`r${at}`)
    }
  })

  test('where nothing was updated since, takes the newest window and no more', async () => {
    const list = createList(500)
    const { outcome } = await readThrough({ ...list, updatedSince: (start + 499.5 * second) / 1000 })
    expect(outcome).toMatchObject({ verdict: 'proven', requests: 1 })
  })

  test('where the watermark is older than the list, goes down to its first page', async () => {
    const list = createList(500)
    const { outcome, ids } = await readThrough({ ...list, updatedSince: 0 })
    expect(outcome).toMatchObject({ verdict: 'proven', records: 500 })
    expect(ids).toHaveLength(500)
  })

  test('takes a record once, as it is newest, though a copy of the service still shows it where it was', async () => {
    const fresh = createList(500)
    const lagging = createList(500)
    fresh.touch(100)
    const fetchPage: FetchPage = (request) =>
      request.ordering === '-updated' ? fresh.fetchPage(request) : lagging.fetchPage(request)
    for (const crash of [0, 0.3]) {
      const random = createRandom(5)
      const { outcome, ids } = await readThrough({ fetchPage, updatedSince: 0 }, { crash, random })
      expect(outcome.verdict).toBe('proven')
      expect(ids.filter((id) => id === 'r100')).toHaveLength(1)
      expect(ids).toHaveLength(500)
      expect(outcome.records).toBe(500)
    }
  })

  test('a list that is not ordered by it is not proven', async () => {
    const list = createList(500)
    list.touch(3)
    const fetchPage: FetchPage = async (request) => {
      const page = await list.fetchPage({ ...request, ordering: 'updated' })
      return { ...page, records: page.records.toSorted(() => 0).toReversed() }
    }
    const { outcome } = await readThrough({ fetchPage, updatedSince: 0 })
    expect(outcome.reasons).toEqual([expect.stringContaining('ordering=updated is not honoured')])
  })
})
