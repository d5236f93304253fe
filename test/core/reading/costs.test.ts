/** Measures a proof in requests and a record in time. */
import { describe, expect, test } from 'vitest'
import type { FetchPage } from '../../../core/reading/range-state.ts'
import { seed } from './any-list.ts'
import { toTimestamp } from '../../../core/billing/instants.ts'
import { DriftingList, quiet, start } from './drifting-list.ts'
import { calm, listOf, standing } from './lists.ts'
import { readInRanges } from './read-in-ranges.ts'
import { readThrough } from './read-through.ts'

/** `READ_RECORDS=1000000` for the size that docs/benchmarks.md names. */
const size = Number(process.env['READ_RECORDS'] ?? 20_000)

test('a quiet list costs at most 1.154 requests for every 100 records', { timeout: 120_000 }, async () => {
  const { outcome, ids } = await readThrough({ fetchPage: standing(size) })
  console.log(
    `${size} records: ${outcome.requests} requests, ${((outcome.requests / size) * 100).toFixed(4)} a page`,
  )
  expect(outcome).toMatchObject({ verdict: 'proven', linksRepaired: 0, records: size })
  expect(ids).toHaveLength(size)
  expect(outcome.requests).toBeLessThan((size / 100) * 1.154 + 2)
})

describe('each range of a quiet list costs at most two requests more', () => {
  test.for([
    [2_000, 2],
    [4_000, 4],
    [12_000, 16],
  ] as const)('%i records in %i ranges', async ([size, most]) => {
    const fetchPage = standing(size)
    const whole = await readThrough({ fetchPage })
    const { outcome, ids } = await readInRanges({ fetchPage }, { divide: { count: size, most } })
    // One request of the plan is for all ranges.
    const more = (outcome.requests - whole.outcome.requests - 1) / (most - 1)
    console.log(`${size} records in ${most} ranges: ${more.toFixed(2)} requests more each`)
    expect(outcome).toMatchObject({ verdict: 'proven', linksRepaired: 0, records: size })
    expect(ids).toEqual(whole.ids)
    expect(more).toBeLessThanOrEqual(2)
  })
})

describe('a quiet group of one time is proven by reading it twice', () => {
  /** What the group costs beside the list without it. */
  const costOf = async (records: number, after: number) => {
    const list = listOf({ seed, size: 2_000, groups: [{ records, after }] })
    const { outcome, ids } = await readThrough({ fetchPage: list.fetchPage })
    expect(outcome.reasons).toEqual([])
    expect(ids.toSorted()).toEqual(list.now.map(({ id }) => id).toSorted())
    return outcome.ties[0]?.requests ?? 0
  }

  test.for([300, 1_000, 10_000])('of %i records, within the list', async (records) => {
    const requests = await costOf(records, 0.5)
    console.log(`${records} records of one created: ${requests} requests`)
    expect(requests).toBeLessThan(40 + (2.3 * records) / 100)
  })

  test.for([0, 0.999])('of 10,000 records, after a share of %d of the list', async (after) => {
    expect(await costOf(10_000, after)).toBeLessThan(40 + 230)
  })

  test.for([
    { name: 'above older changes', changed: 10_000, size: 20_000 },
    { name: 'that is the whole list', changed: 10_000, size: 10_000 },
    { name: 'below newer changes', changed: 10_000, size: 20_000, newer: 700 },
    { name: 'beside two more groups', changed: 5_000, size: 20_000, more: [5_000, 700] },
  ])('of 10,000 records with one `updated`, $name, incrementally', { timeout: 60_000 }, async (bulk) => {
    const { changed, size, newer = 0, more = [] } = bulk
    const second = 1_000_000
    const updates = [changed, ...more].flatMap((many, at) => Array.from({ length: many }, () => at))
    const updated = [
      ...Array.from({ length: size - updates.length - newer }, (_, at) => start + at * second),
      ...updates.map((at) => start + (size + at) * second),
      ...Array.from({ length: newer }, (_, at) => start + (2 * size + at) * second),
    ]
    const list = listOf({ seed, size: 0 })
    list.versions = [
      updated.map((at, place) => {
        const record = { id: `r${place}`, created: toTimestamp(start + place), updated: toTimestamp(at) }
        return { id: `r${place}`, at: start + place, updated: at, record }
      }),
    ]
    const since = start + (size - updates.length - newer - 100) * second
    const { outcome, ids } = await readThrough({ fetchPage: list.fetchPage, updatedSince: since / 1_000 })
    expect(outcome).toMatchObject({ verdict: 'proven', reasons: [], ordering: 'updated' })
    expect(new Set(ids).size).toBe(ids.length)
    const taken = new Set(ids)
    expect(updated.flatMap((at, place) => (at >= since && !taken.has(`r${place}`) ? [place] : []))).toEqual(
      [],
    )
    console.log(`bulk update ${bulk.name}: ${outcome.requests} requests`)
    expect(outcome.requests).toBeLessThan(350)
  })
})

describe('a list with 30 deletes, 30 inserts and 30 updates a second at 10 requests a second is proven', () => {
  const drift = { ...quiet, deletes: 3, inserts: 1.5, lateCommits: 1.5, updates: 3 }
  test.for([0, 0.3, 0.6])(
    'with a share of %d ties, by at most 1.19 requests for every 100 records',
    async (ties) => {
      let [requests, records] = [0, 0]
      for (let run = 0; run < 5; run++) {
        const options = { seed: seed + run, size: 6000, ties, drift, shuffledTies: true, countLag: 3 }
        const list = new DriftingList({ ...calm, ...options })
        const { outcome, ids } = await readThrough({ fetchPage: list.fetchPage })
        expect(outcome.reasons).toEqual([])
        const taken = new Set(ids)
        expect([...list.throughout].filter((id) => !taken.has(id))).toEqual([])
        requests += outcome.requests
        records += outcome.records
      }
      console.log(`seed ${seed}, ties ${ties}: ${((requests / records) * 100).toFixed(3)} requests a page`)
      expect(requests / (records / 100)).toBeLessThan(1.19)
    },
  )
})

test('reading adds less than 10 microseconds to a record', async () => {
  const pages = new Map<string, Awaited<ReturnType<FetchPage>>>()
  const list = standing(10_000)
  const fetchPage: FetchPage = async (request) => {
    const key = `${request.ordering} ${request.page} ${request.pageSize}`
    const page = pages.get(key) ?? (await list(request))
    pages.set(key, page)
    return page
  }
  await readThrough({ fetchPage })
  const before = process.cpuUsage()
  const { outcome } = await readThrough({ fetchPage })
  const { user, system } = process.cpuUsage(before)
  const perRecord = (user + system) / outcome.records
  console.log(`${perRecord.toFixed(2)} microseconds of CPU a record`)
  // 0.9 on the machine it was written on; the service's own JSON costs about ten times that.
  expect(perRecord).toBeLessThan(10)
})
