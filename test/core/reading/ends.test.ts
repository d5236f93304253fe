/** A read ends, whatever the service does: it counts its requests, and says why it stopped. */
import { describe, expect, test } from 'vitest'
import { NotFound, Refused, ServiceFault } from '../../../core/billing/errors.ts'
import { toTimestamp } from '../../../core/billing/instants.ts'
import { readList } from '../../../core/reading/read-list.ts'
import type { FetchPage, RangeState } from '../../../core/reading/range-state.ts'
import { createRandom, type DriftingList, start } from './drifting-list.ts'
import { failure, listById, listOf } from './lists.ts'
import { createIdSet, readOptions, readThrough } from './read-through.ts'

/** A list that grows while it is read, each record older than those that came before it. */
function growing(where: 'at its newest end' | 'in the middle' | 'at its oldest end', by = 300): FetchPage {
  const hour = 3_600_000_000
  const item = (id: string, at: number) => ({ id, created: toTimestamp(at) })
  const items = Array.from({ length: 2_000 }, (_, place) => item(`r${place}`, start + place * hour))
  const place = where === 'in the middle' ? 1_000 : where === 'at its oldest end' ? 0 : 2_000
  let inserted = 0
  return ({ ordering, page, pageSize }) => {
    const more = Array.from({ length: by }, (_, at) =>
      where === 'at its newest end'
        ? item(`n${inserted + at}`, start + 2_000 * hour + inserted + at)
        : item(`n${inserted + at}`, start + (place - 0.5) * hour - inserted - at),
    )
    inserted += by
    if (where === 'at its newest end') items.push(...more)
    else items.splice(place, 0, ...more.toReversed())
    const list = ordering === '-created' ? items.toReversed() : items
    const records = list.slice((page - 1) * pageSize, page * pageSize)
    return Promise.resolve({ records, count: items.length, next: `?page=${page + 1}`, servedAt: undefined })
  }
}

describe('a list that grows as fast as it is read', () => {
  test.each([
    ['in the middle', 40],
    ['at its oldest end', 40],
    ['in the middle', 300],
    ['at its oldest end', 300],
  ] as const)('%s, by %i records a request, is left unproven', async (where, by) => {
    const { outcome, ids } = await readThrough({ fetchPage: growing(where, by) })
    expect(outcome.verdict).toBe('unproven')
    if (by === 40) expect(outcome.reasons[0]).toMatch(/^the list grows as fast as it is read: it had 2/)
    expect(outcome.requests).toBeLessThan(600)
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('at its newest end is proven, because the read goes away from it', async () => {
    const { outcome } = await readThrough({ fetchPage: growing('at its newest end', 40) })
    expect(outcome.reasons).toEqual([])
  })

  test('is left, however often the read is interrupted', async () => {
    const how = { crash: 0.02, random: createRandom(29) }
    const { outcome } = await readThrough({ fetchPage: growing('at its oldest end', 40) }, how)
    expect(outcome.verdict).toBe('unproven')
    expect(outcome.requests).toBeLessThan(1_000)
  })
})

test('a group that no attempt has the time to sweep ends the chain, and is read page by page', async () => {
  const list = listOf({ size: 100, groups: [{ records: 3_000, after: 0.5 }] })
  const idSet = () => Promise.resolve(createIdSet([]))
  let state: RangeState | undefined
  for (let attempt = 0; attempt < 1_000; attempt++) {
    const read = readList({ ...readOptions, idSet, fetchPage: list.fetchPage, ...(state && { state }) })
    for (let steps = 0; steps < 20; steps++) {
      const step = await read.next()
      if (step.done === true) {
        expect(step.value.reasons).toEqual([
          expect.stringMatching(/^\d+ requests in a row brought the read no further$/),
        ])
        return
      }
      state = step.value.state
    }
    await read.return(undefined as never)
  }
  expect.unreachable('the read does not end')
})

test.each([1e12, 0, undefined])(
  'a service whose pages come round again, and that counts %s, is left',
  async (count) => {
    // Unordered, so that it is read page by page.
    const list = listById({ size: 730 })
    let requests = 0
    const fetchPage: FetchPage = async ({ page, ...request }) => {
      if (++requests > 3_000) throw new Error('the read does not end')
      await Promise.resolve()
      const served = list.serve({ ...request, ordering: 'created', page: ((page - 1) % 7) + 1 })
      return { ...served, count, next: '/list/?page=1' }
    }
    const { outcome, ids } = await readThrough({ fetchPage })
    expect(outcome.reasons).toContainEqual(expect.stringContaining('the service repeats pages'))
    expect(new Set(ids).size).toBe(ids.length)
    expect(outcome.requests).toBeLessThan(60)
  },
)

describe('a service that refuses pages above number 10', () => {
  const refusals = {
    'by a 404': new NotFound({ ...failure, status: 404, messages: ['Invalid page.'] }),
    'by a 400': new Refused({ ...failure, status: 400, messages: ['page must be at most 10'] }),
  }
  const refusing = (list: DriftingList, error: Error, most = 10): FetchPage => {
    let requests = 0
    return async (request) => {
      if (++requests > 3_000) throw new Error('the read does not end')
      await Promise.resolve()
      if (request.page > most) throw error
      return list.serve(request)
    }
  }

  test.each(Object.entries(refusals))('%s is named as such, and what it serves is read', async (_, error) => {
    const list = listOf({ size: 3_000 })
    const { outcome, ids } = await readThrough({ fetchPage: refusing(list, error) })
    expect(outcome.reasons).toEqual([
      expect.stringMatching(/^the service counts 3000 records but refuses page \d+ of \d+/),
      expect.stringMatching(/^the service counts 3000 records but refuses page 11/),
    ])
    if (error instanceof Refused) expect(outcome.reasons.join()).toContain('page must be at most 10')
    expect(ids).toHaveLength(1_100)
    expect(outcome.requests).toBeLessThan(80)
  })

  test('by errors of a broken service, is left after page 1 was served all the same', async () => {
    const list = listOf({ size: 3_000 })
    const error = new ServiceFault({ ...failure, status: 500 })
    const { outcome, ids } = await readThrough({ fetchPage: refusing(list, error) })
    expect(outcome.reasons).toContain('3 pages in a row could not be read although page 1 could')
    expect(ids).toHaveLength(1_100)
  })

  test.each([
    ['within a group of one time', { size: 500, groups: [{ records: 1_500, after: 0.5 }] }, {}],
    ['below the newest records of one `updated`', { size: 3_000 }, { updatedSince: 0 }],
  ])('%s is named, not the group', async (_, options, read) => {
    const list = listOf(options)
    if ('updatedSince' in read) {
      const updated = toTimestamp(start)
      list.versions = [list.now.map((item) => ({ ...item, record: { ...item.record, updated } }))]
    }
    const { outcome } = await readThrough({ fetchPage: refusing(list, refusals['by a 404']), ...read })
    expect(outcome.reasons[0]).toContain('but refuses page')
    expect(outcome.reasons.join()).not.toMatch(/moved|kept changing/)
  })
})
