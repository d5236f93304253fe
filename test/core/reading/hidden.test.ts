import { describe, expect, test } from 'vitest'
import { Refused } from '../../../core/billing/errors.ts'
import { statusesOf } from '../../../core/billing/resources/filters.ts'
import { subscriptions } from '../../../core/billing/resources/subscriptions.ts'
import type { ReadOptions } from '../../../core/reading/range-state.ts'
import { hiding, rows } from './hiding-service.ts'
import { readInRanges } from './read-in-ranges.ts'
import { createIdSet, readOptions, readThrough } from './read-through.ts'

const options = { resource: subscriptions, now: () => Date.parse('2026-11-21T12:00:00Z') }

describe('records that a list hides unless their status is asked for', () => {
  test('are found, read status by status, and written once', async () => {
    const all = rows(1000)
    const { outcome, ids } = await readThrough({ ...options, ...hiding(all, ['cancelled']) })
    expect(outcome.verdict).toBe('proven')
    expect(ids.toSorted()).toEqual(all.map(({ id }) => id).toSorted())
    expect(outcome.scope.join(' ')).toContain('The list hides some records unless their status is requested')
    expect(outcome.countBefore).toBe(750)
  })

  test('are found although all that were looked at before the read are deleted during it', async () => {
    const all = rows(1000)
    const cancelled = all.filter(({ status }) => status === 'cancelled')
    const gone = new Set([...cancelled.slice(0, 100), ...cancelled.slice(-100)])
    const { outcome, ids } = await readThrough({
      ...options,
      ...hiding(all, ['cancelled'], {
        onRequest: (asked) => {
          if (asked === 16) all.splice(0, all.length, ...all.filter((row) => !gone.has(row)))
        },
      }),
    })
    expect(outcome.verdict).toBe('proven')
    expect(all.filter(({ id }) => !ids.includes(id))).toEqual([])
  })

  test('are found although all that were looked at before the read move to a status that the list shows', async () => {
    const all = rows(1000)
    const cancelled = all.filter(({ status }) => status === 'cancelled')
    const resumed = [...cancelled.slice(0, 100), ...cancelled.slice(-100)]
    const { outcome, ids } = await readThrough({
      ...options,
      ...hiding(all, ['cancelled'], {
        onRequest: (asked) => {
          if (asked !== 14) return
          for (const row of resumed)
            Object.assign(row, { status: 'active', updated: '2026-11-21T12:00:10.000000Z' })
        },
      }),
    })
    expect(outcome).toMatchObject({ verdict: 'proven', hiddenFound: true })
    expect(all.filter(({ id }) => !ids.includes(id))).toEqual([])
  })

  test('are found although an old count cuts off all of them that were there before the read', async () => {
    const all = rows(1000)
    const service = hiding(all, ['cancelled'], {
      onRequest: (asked) => {
        if (asked !== 16) return
        const created = '2026-11-21T12:00:10.000000Z'
        all.push(...['n1', 'n2'].map((id) => ({ id, created, updated: created, status: 'cancelled' })))
      },
    })
    const { outcome, ids } = await readThrough({
      ...options,
      ...service,
      fetchPage: async (request) => {
        const page = await service.fetchPage(request)
        if (request.filters['status'] !== 'cancelled' || service.asked.length > 60) return page
        return { ...page, records: page.records.slice(0, 2), count: 2, next: null }
      },
    })
    expect(outcome).toMatchObject({ verdict: 'proven', hiddenFound: true })
    expect(ids).toEqual(expect.arrayContaining(all.slice(0, 1000).map(({ id }) => id)))
  })

  test('are found although they have no id, and nothing else has their status', async () => {
    const all = rows(1000).map((row) => ({ ...row, status: 'active' }))
    Object.assign(all[500]!, { id: '', status: 'finalized' })
    const { outcome } = await readThrough({ ...options, ...hiding(all, ['finalized']) })
    expect(outcome).toMatchObject({ verdict: 'proven', hiddenFound: true, records: 999 })
    expect(outcome.scope).toContain('Records without a usable id, in rejected.jsonl: 1.')
  })

  test.each([
    ['in one piece', (options: ReadOptions) => readThrough(options)],
    ['in ranges', (options: ReadOptions) => readInRanges(options, { divide: { count: 750, most: 3 } })],
  ])('cost the proof where the service refuses to show a status, also read %s', async (_title, read) => {
    const { fetchPage } = hiding(rows(1000), ['cancelled'])
    const refused = new Refused({ method: 'GET', path: '/', status: 400, byService: true })
    const { outcome } = await read({
      ...readOptions,
      ...options,
      idSet: () => Promise.resolve(createIdSet([])),
      fetchPage: (request) =>
        request.filters['status'] === 'cancelled' ? Promise.reject(refused) : fetchPage(request),
    })
    expect(outcome).toMatchObject({ verdict: 'unproven', records: 750 })
    expect(outcome.reasons).toEqual([
      `the list may hide records whose status is cancelled, and they cannot be asked for: ${refused.message}`,
    ])
  })

  test.each([
    ['as the read begins', 12],
    ['after it has begun', 16],
  ])('are a doubt where the first of them becomes hidden %s', async (_title, turn) => {
    const all = rows(1000).map((row) => (row.status === 'finalized' ? { ...row, status: 'active' } : row))
    const { outcome, ids } = await readThrough({
      ...options,
      ...hiding(all, ['finalized'], {
        onRequest: (asked) => {
          if (asked === turn)
            Object.assign(all[500]!, { status: 'finalized', updated: '2026-11-21T12:00:10.000000Z' })
        },
      }),
    })
    expect(outcome).toMatchObject({ verdict: 'proven', hiddenFound: false, statusCheck: 'unread' })
    expect(ids).not.toContain('s500')
  })

  test('are a doubt where more records changed during the read than the newest page of a status shows', async () => {
    const all = rows(1000).map((row) => (row.status === 'finalized' ? { ...row, status: 'active' } : row))
    const { outcome, ids } = await readThrough({
      ...options,
      ...hiding(all, ['finalized'], {
        onRequest: (asked) => {
          if (asked !== 16) return
          Object.assign(all[500]!, { status: 'finalized', updated: '2026-11-21T12:00:10.000000Z' })
          // These were read before: all of the newest page is known.
          for (const row of all.slice(-120))
            Object.assign(row, { status: 'finalized', updated: '2026-11-21T12:00:20.000000Z' })
        },
      }),
    })
    expect(ids).not.toContain('s500')
    expect(outcome).toMatchObject({ verdict: 'proven', hiddenFound: false, statusCheck: 'unseen' })
  })

  test('are no doubt where what changed during the read was read', async () => {
    const all = rows(1000)
    const { outcome } = await readThrough({
      ...options,
      ...hiding(all, [], {
        onRequest: (asked) => {
          if (asked === 16) Object.assign(all[500]!, { updated: '2026-11-21T12:00:10.000000Z' })
        },
      }),
    })
    expect(outcome).toMatchObject({ verdict: 'proven', hiddenFound: false, statusCheck: 'clear' })
  })

  test.each(['1600-01-01T00:00:00.000001Z', '2026-01-01 00:00:00Z'])(
    'are found, and cost the proof, where one was created at %s, which nobody can compare',
    async (created) => {
      const all = rows(1000).map((row) => ({ ...row, status: 'active' }))
      Object.assign(all[500]!, { created, status: 'finalized' })
      const { outcome, ids } = await readThrough({ ...options, ...hiding(all, ['finalized']) })
      expect(outcome).toMatchObject({ verdict: 'unproven', hiddenFound: true })
      expect(ids).toContain('s500')
    },
  )

  test('are a doubt where one becomes hidden whose time of creation nobody can compare', async () => {
    const all = rows(1000).map((row) => ({ ...row, status: 'active' }))
    Object.assign(all[500]!, { created: all[500]!.created.replace('T', ' ') })
    const onRequest = (asked: number) => {
      if (asked === 12)
        Object.assign(all[500]!, { status: 'finalized', updated: '2026-11-21T12:00:10.000000Z' })
    }
    const { outcome } = await readThrough({ ...options, ...hiding(all, ['finalized'], { onRequest }) })
    expect(outcome).toMatchObject({ verdict: 'proven', hiddenFound: false, statusCheck: 'unread' })
  })

  test('are found where only the old ones of a status are hidden', async () => {
    const all = rows(1000)
    const archived = new Set(all.filter(({ status }) => status === 'cancelled').slice(0, 100))
    const { outcome, ids } = await readThrough({
      ...options,
      ...hiding(all, [], { isHidden: (row) => archived.has(row) }),
    })
    expect(outcome).toMatchObject({ verdict: 'proven', hiddenFound: true })
    expect(ids.toSorted()).toEqual(all.map(({ id }) => id).toSorted())
  })

  test.each([
    ['shows', 1000, 'unordered'],
    ['shows, but holds few records,', 300, 'clear'],
  ] as const)(
    'can be missed where the list does not follow the order of changes: a status that it %s is %s',
    async (_title, size, statusCheck) => {
      const { outcome } = await readThrough({
        ...options,
        ...hiding(rows(size), [], { ignored: ['-updated'] }),
      })
      expect(outcome).toMatchObject({ verdict: 'proven', statusCheck })
    },
  )

  test('are looked for in the other orders where the service refuses one', async () => {
    const { fetchPage } = hiding(rows(1000), ['cancelled'])
    const refused = new Refused({ method: 'GET', path: '/', status: 400, byService: true })
    const { outcome } = await readThrough({
      ...options,
      fetchPage: (request) =>
        request.ordering === '-updated' ? Promise.reject(refused) : fetchPage(request),
    })
    expect(outcome).toMatchObject({ verdict: 'proven', hiddenFound: true, records: 1_000 })
  })

  test('cost one request a status, before the read and after it, where there are none', async () => {
    const { fetchPage, asked } = hiding(rows(90), [])
    const { outcome } = await readThrough({ ...options, fetchPage })
    expect(outcome).toMatchObject({ verdict: 'proven', requests: 5 + 2 + 5, records: 90 })
    expect(asked.slice(0, 5)).toEqual(statusesOf(subscriptions).map((status) => `${status} created`))
    expect(outcome.scope.join(' ')).not.toContain('hides')
  })

  test('are looked for once after the read, wherever the process crashes', async () => {
    const { fetchPage } = hiding(rows(90), [])
    const taken = await readThrough({ ...options, fetchPage }, { crash: 1, random: () => 0 })
    expect(taken.outcome).toMatchObject({ verdict: 'proven', requests: 5 + 2 + 5, statusCheck: 'clear' })
    expect(taken.certificate.split('"looked"')).toHaveLength(2)
  })

  test('are not looked for where requests are limited, so a read that does not reach the limit is not proven', async () => {
    const service = hiding(rows(1000), ['cancelled'])
    const { outcome } = await readThrough({ ...options, ...service, maxRequests: 1_000 })
    expect(outcome).toMatchObject({ verdict: 'unproven', capped: false, records: 750 })
    expect(outcome.reasons).toEqual([
      'its requests are limited, so none were spent on records that the list hides by their status',
    ])
  })

  test('are not looked for where a status is asked for', async () => {
    const { fetchPage, asked } = hiding(rows(90), ['cancelled'])
    const { outcome } = await readThrough({ ...options, fetchPage, filters: { status: 'paused' } })
    expect(outcome).toMatchObject({ verdict: 'proven', requests: 2 })
    expect(new Set(asked)).toEqual(new Set(['paused -created', 'paused created']))
  })

  test('a record that is deleted during the read is not taken for hidden', async () => {
    const all = rows(500)
    const { fetchPage, asked } = hiding(all, [])
    const { outcome } = await readThrough({
      ...options,
      fetchPage: (request) => {
        if (asked.length === 5) all.splice(-3, 3)
        return fetchPage(request)
      },
    })
    expect(outcome.verdict).toBe('proven')
    expect(outcome.scope.join(' ')).not.toContain('hides')
    expect(outcome.records).toBe(497)
  })

  test.each([
    ['costs the proof where a status was not met, which the list may hide', 'paused', 'unproven'],
    ['costs nothing where a record of each status was met', 'needs_attention', 'proven'],
  ])('a status filter that is ignored %s', async (_title, status, verdict) => {
    const all = rows(300)
    Object.assign(all[150]!, { status })
    const { fetchPage } = hiding(
      all,
      ['needs_attention'].filter((hidden) => hidden !== status),
    )
    const { outcome } = await readThrough({
      ...options,
      fetchPage: (request) => fetchPage({ ...request, filters: {} }),
    })
    expect(outcome).toMatchObject({ verdict, records: 300 })
    expect(outcome.scope.join(' ')).not.toContain('hides')
  })

  test('cost nothing where the service refuses a status that the list shows', async () => {
    const { fetchPage } = hiding(rows(300), [])
    const refused = new Refused({ method: 'GET', path: '/', status: 400, byService: true })
    const { outcome } = await readThrough({
      ...options,
      fetchPage: (request) =>
        request.filters['status'] === 'cancelled' ? Promise.reject(refused) : fetchPage(request),
    })
    expect(outcome).toMatchObject({ verdict: 'proven', records: 300 })
  })

  test("the first look at a status tells the service's clock", async () => {
    const { outcome } = await readThrough({ ...options, ...hiding(rows(50), []) })
    expect(outcome).toMatchObject({ clock: 'service', completeThrough: '2026-11-21T11:59:30.000000Z' })
  })
})
