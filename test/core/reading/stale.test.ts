import { describe, expect, test } from 'vitest'
import type { ListPage } from '../../../core/billing/reply.ts'
import { subscriptions } from '../../../core/billing/resources/subscriptions.ts'
import type { FetchPage } from '../../../core/reading/range-state.ts'
import { json, quickBilling, startTinyService } from '../billing/tiny-service.ts'
import { listOf } from './lists.ts'
import { readThrough } from './read-through.ts'

const began = Date.parse('2026-11-21T12:00:00Z')
const minute = 60_000
const reason =
  'responses were older than the read, 3 times in a row: a cache or a lagging replica is answering'

const list = listOf({ size: 250 })

/** Reads a list that stands still; `more` says when each request, counted from 1, was answered. */
function readServed(more: (request: number) => Partial<ListPage>, options = {}) {
  let requests = 0
  const fetchPage: FetchPage = (request) => Promise.resolve({ ...list.serve(request), ...more(++requests) })
  return readThrough({ fetchPage, serviceTime: began, now: () => began, ...options })
}

describe('a response that is older than the read', () => {
  test('is asked for again, and costs nothing but that request', async () => {
    const usual = await readServed(() => ({ servedAt: began }))
    const { outcome } = await readServed((request) => ({
      servedAt: request === 2 ? began - 20 * minute : began,
    }))
    expect(outcome).toMatchObject({ verdict: 'proven', reasons: [] })
    expect(outcome.requests).toBe(usual.outcome.requests + 1)
  })

  test('is known by its age alone where no answer carries a Date', async () => {
    const { outcome } = await readServed(() => ({ servedAt: undefined, ageMs: 20 * minute }), {
      serviceTime: undefined,
    })
    expect(outcome.reasons).toEqual([reason])
  })

  test('is a look at one status too', async () => {
    const { outcome } = await readServed(
      (request) => ({ servedAt: request === 1 ? began - 20 * minute : began }),
      { resource: subscriptions },
    )
    expect(outcome.verdict).toBe('proven')
    const always = await readServed(() => ({ servedAt: began - 20 * minute }), { resource: subscriptions })
    expect(always.outcome.reasons).toEqual([reason])
  })

  test('stays within the cap on requests', async () => {
    const { outcome } = await readServed(() => ({ servedAt: began - 20 * minute }), { maxRequests: 2 })
    expect(outcome.requests).toBe(2)
    expect(outcome.reasons).toContain(reason)
  })
})

test('servers whose clocks differ by seconds give a proof, which promises what the latest of them could show', async () => {
  const { outcome } = await readServed((request) => ({ servedAt: began - (request === 2 ? 3_000 : 0) }))
  expect(outcome).toMatchObject({ verdict: 'proven', completeThrough: '2026-11-21T11:58:57.000000Z' })
})

test('a read asks caches for nothing old, and takes the age of an answer off its Date', async () => {
  const headers = { date: 'Wed, 21 Oct 2026 07:28:00 GMT', age: '1200' }
  await using service = await startTinyService(json(200, { count: 0, results: [], next: null }, headers))
  const billing = quickBilling(service)
  const page = await billing.list({ resource: subscriptions, page: 1, pageSize: 100 })
  expect(page).toMatchObject({ servedAt: Date.UTC(2026, 9, 21, 7, 8), ageMs: 1_200_000 })
  await billing.createAddon({}).catch(() => undefined)
  expect(service.seen.map((one) => one.headers['cache-control'])).toEqual(['no-cache', undefined])
})
