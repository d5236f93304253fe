import { describe, expect, test } from 'vitest'
import { toTimestamp } from '../../../core/billing/instants.ts'
import type { FetchPage } from '../../../core/reading/range-state.ts'
import { start } from './drifting-list.ts'
import { listOf } from './lists.ts'
import { readThrough } from './read-through.ts'

const item = (id: string, at: number) => ({
  id,
  at,
  updated: at,
  record: { id, created: toTimestamp(at), updated: toTimestamp(at) },
})

/** Records before a group of one time, and a service that cuts each order at its count, as Django's paginator does. */
function cutting(of: { older: number; group: number; counted: (request: number) => number }) {
  const all = [
    ...Array.from({ length: of.older }, (_, at) => item(`older ${at}`, start - of.older + at)),
    ...Array.from({ length: of.group }, (_, at) => item(`t${at}`, start)),
  ]
  let requests = 0
  const fetchPage: FetchPage = (request) => {
    const list = listOf({ size: 0 })
    const counted = of.counted(requests++)
    list.versions = [request.ordering === '-created' ? all.slice(-counted) : all.slice(0, counted)]
    return list.fetchPage(request)
  }
  return { all, fetchPage }
}

describe('where a list is cut at an old count', () => {
  test.each([
    { older: 40, group: 400, count: 250 },
    { older: 1, group: 130, count: 20 },
    { older: 0, group: 250, count: 100 },
  ])('$count of $group newest records of one time, after $older, are not taken for all', async (of) => {
    const { fetchPage } = cutting({ ...of, counted: () => of.count })
    const { outcome } = await readThrough({ fetchPage })
    expect(outcome.verdict).toBe('unproven')
    expect(outcome.reasons.join()).toContain('10 sweeps did not agree')
  })

  test.each([0, 40])('it is proven once it counts all, after %i older records', async (older) => {
    const { all, fetchPage } = cutting({ older, group: 400, counted: (at) => (at < 20 ? 250 : older + 400) })
    const { outcome, ids } = await readThrough({ fetchPage })
    expect(outcome.verdict).toBe('proven')
    expect(ids.toSorted()).toEqual(all.map(({ id }) => id).toSorted())
  })

  test('newer records that come after its sweeps cost it nothing', async () => {
    const group = Array.from({ length: 60 }, (_, at) => item(`t${at}`, start))
    let starts = 0
    const { outcome, ids } = await readThrough({
      fetchPage: (request) => {
        const list = listOf({ size: 0 })
        if (request.ordering === 'created') starts++
        list.versions = [starts > 0 ? [...group, item('newer', start + 1)] : group]
        return list.fetchPage(request)
      },
    })
    expect(outcome.verdict).toBe('proven')
    expect(starts).toBe(1)
    expect(ids).toEqual(expect.arrayContaining(group.map(({ id }) => id)))
  })
})
