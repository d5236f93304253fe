/** Services that ignore `page_size`, as Django's default pagination does, over real HTTP. */
import { describe, expect, test } from 'vitest'
import { customers } from '../../../core/billing/resources/customers.ts'
import type { FetchPage } from '../../../core/reading/range-state.ts'
import { clientOf, startSandbox } from '../changes/engine.ts'
import { readInRanges } from './read-in-ranges.ts'
import { readThrough } from './read-through.ts'

async function openService({ size, records }: { size: number; records: number }) {
  const sandbox = await startSandbox({
    counts: { customers: records },
    tieOrder: 'stable',
    faults: [{ kind: 'pageSize', cap: size, fixed: true }],
  })
  const billing = clientOf(sandbox)
  const fetchPage: Parameters<typeof readThrough>[0]['fetchPage'] = (page) =>
    billing.list({ resource: customers, ...page })
  const all = sandbox.control.ids({ resource: 'customers' }).map(String).toSorted()
  return { fetchPage, now: Date.now, all, control: sandbox.control }
}

describe('a service whose pages have a fixed size', () => {
  test.for([10, 20, 100, 250])('of %i is read page by page, also in ranges, unproven', async (size) => {
    const { all, ...read } = await openService({ size, records: 730 })
    const whole = await readThrough(read)
    expect(whole.outcome.reasons).toEqual([expect.stringMatching(/page size|at most 10 records a page/)])
    for (const { outcome, ids } of [whole, await readInRanges(read, { divide: { count: 730, most: 4 } })]) {
      expect(ids.toSorted()).toEqual(all)
      expect(outcome.verdict).toBe('unproven')
    }
  })

  test('proves a list that its first page holds', async () => {
    const { all, ...read } = await openService({ size: 100, records: 60 })
    const { outcome, ids } = await readThrough(read)
    expect(outcome).toMatchObject({ verdict: 'proven', reasons: [] })
    expect(ids.toSorted()).toEqual(all)
  })

  test.for([
    ['no count and null as `next`', { count: undefined, next: null }],
    ['no count and a `next` without a page', { count: undefined, next: '/customers/?cursor=c3' }],
    ['each page for the whole list', { count: 20, next: null }],
  ] as const)('is not proven by its first page of one time with %s', async ([, claim]) => {
    const records = Array.from({ length: 50 }, (_, at) => ({
      id: `r${at}`,
      created: `2026-01-${10 + Math.min(at, 10)}T00:00:00Z`,
    }))
    const newestFirst = records.slice(10).concat(records.slice(0, 10).toReversed())
    const fetchPage: FetchPage = async ({ ordering, page }) => {
      const list = ordering === '-created' ? newestFirst : records
      return { records: list.slice((page - 1) * 20, page * 20), servedAt: undefined, ...claim }
    }
    const { outcome } = await readThrough({ fetchPage })
    expect(outcome).toMatchObject({ verdict: 'unproven', records: 50 })
  })
})

test('a cap on requests counts those that failed, and none more is sent', async () => {
  const { fetchPage, now, control } = await openService({ size: 100, records: 60 })
  control.setFaults({ faults: [{ kind: 'error', status: 503 }] })
  const before = control.requests().length
  const { outcome } = await readThrough({ fetchPage, now, maxRequests: 3 })
  expect(control.requests().length - before).toBe(3)
  expect(outcome).toMatchObject({ verdict: 'unproven', capped: true, requests: 3 })
})
