import { describe, expect, test } from 'vitest'
import { Forbidden, NotFound, ServiceFault } from '../../../core/billing/errors.ts'
import { toTimestamp } from '../../../core/billing/instants.ts'
import { TestModeMismatch } from '../../../core/reading/record.ts'
import { readList } from '../../../core/reading/read-list.ts'
import { type FetchPage, type RangeState, startState } from '../../../core/reading/range-state.ts'
import { type DriftingList, start } from './drifting-list.ts'
import { failure, listOf, serving } from './lists.ts'
import { createIdSet, readOptions, readThrough } from './read-through.ts'

const record = (id: string, after: number) => {
  const at = start + after
  return { id, at, updated: at, record: { id, created: toTimestamp(at) } }
}
const tied = (id: string) => record(id, 0)

async function expectWhole(list: DriftingList, options: Parameters<typeof readThrough>[0]) {
  const taken = await readThrough(options)
  expect(taken.outcome.reasons).toEqual([])
  expect(taken.outcome.verdict).toBe('proven')
  expect(taken.ids.toSorted()).toEqual(list.now.map(({ id }) => id).toSorted())
  return taken
}

describe('a list that stands still', () => {
  test.for([
    { size: 0, requests: 2 },
    { size: 2, requests: 2 },
    { size: 99, requests: 2 },
    { size: 100, requests: 2 },
    { size: 101, requests: 2 },
  ])('of $size records is proven by $requests requests', async ({ size, requests }) => {
    const list = listOf({ size })
    const { outcome } = await expectWhole(list, { fetchPage: list.fetchPage })
    expect(outcome).toMatchObject({
      requests,
      records: size,
      countBefore: size,
      countAfter: size,
      linksRepaired: 0,
    })
  })

  test.for([
    [1, 12],
    [30, 12],
    [99, 14],
    [250, 19],
  ] as const)('of %i records of one time is proven by two sweeps that agree', async ([size, requests]) => {
    const list = listOf({ size: 0, groups: [] })
    list.versions = [Array.from({ length: size }, (_, at) => tied(`t${at}`))]
    const { outcome } = await expectWhole(list, { fetchPage: list.fetchPage })
    expect(outcome.requests).toBe(requests)
    expect(outcome.ties).toMatchObject([{ at: toTimestamp(start), records: size, sweeps: 2 }])
  })

  test('of 30 records of one time is not proven while 31 are counted', async () => {
    const list = listOf({ size: 0 })
    list.versions = [Array.from({ length: 30 }, (_, at) => tied(`t${at}`))]
    const fetchPage = serving(list, (page) => ({ ...page(), count: 31 }))
    const { outcome, ids } = await readThrough({ fetchPage })
    expect(outcome.verdict).toBe('unproven')
    expect(ids).toHaveLength(30)
  })

  test('of 60,000 records of one time is not proven: their ids are too many to compare', async () => {
    const list = listOf({ size: 0 })
    list.versions = [Array.from({ length: 60_000 }, (_, at) => tied(`t${at}`))]
    const { outcome } = await readThrough({ fetchPage: list.fetchPage, maxRequests: 60 })
    expect(outcome.reasons[0]).toMatch(/has 60000 records: no more than 50000 can be compared$/)
  })

  test('is not taken for empty because its start is once not shown', async () => {
    const list = listOf({ size: 50 })
    const fetchPage = serving(list, (page, request) =>
      request.ordering === 'created' ? { ...page(), records: [], count: 0 } : page(),
    )
    const { outcome } = await readThrough({ fetchPage })
    expect(outcome.verdict).toBe('unproven')
  })

  test('comes newest first', async () => {
    const list = listOf({ size: 1000 })
    const { ids } = await readThrough({ fetchPage: list.fetchPage })
    expect(ids).toEqual(list.now.map(({ id }) => id).toReversed())
  })

  test('holds a group of 70 by one window, in whatever order its records come', async () => {
    const list = listOf({ size: 2000, groups: [{ records: 70, after: 0.5 }], shuffledTies: true })
    const { outcome } = await expectWhole(list, { fetchPage: list.fetchPage })
    expect(outcome.ties).toEqual([])
  })
})

describe('a large group of one time is not proven', () => {
  const size = 250
  const members = Array.from({ length: size }, (_, at) => tied(`t${at}`))
  const [newer, older] = [record('newer', 1), record('older', -1)]

  /** A list with the group in its middle, whose order changes with each request. */
  function grouped(order: (low: number, high: number, request: number) => typeof members) {
    let requests = 0
    const fetchPage: FetchPage = (request) => {
      const low = (request.page - 1) * request.pageSize
      const list = listOf({ size: 0 })
      // The group begins at place 1, or at place 1 from the other end.
      list.versions = [[older, ...order(low - 1, low + request.pageSize - 2, requests++), newer]]
      return list.fetchPage(request)
    }
    return fetchPage
  }

  test('where a record of it is always somewhere else', async () => {
    const fetchPage = grouped((low, high) => {
      const place = low > 0 ? 0 : high + 1
      return members.slice(1).toSpliced(Math.min(place, size - 1), 0, tied('t0'))
    })
    const { outcome, ids } = await readThrough({ fetchPage })
    expect(ids).not.toContain('t0')
    expect(outcome.verdict).toBe('unproven')
  })

  test('where each sweep shows as many records as there are, but other ones', async () => {
    const fetchPage = grouped((low, high, request) => {
      const first = low <= 0
      const others = members.slice(2).toSpliced(first ? high : low - 1, 0, tied(`new ${request}`))
      return others.toSpliced(first ? high + 1 : 0, 0, tied('t0'))
    })
    const { outcome } = await readThrough({ fetchPage })
    expect(outcome.verdict).toBe('unproven')
  })
})

test('a record that slides past two sweeps in a row is taken: the places of a group are counted before, between and after them', async () => {
  const others = Array.from({ length: 349 }, (_, at) => tied(`t${at}`))
  const [here, fickle] = [tied('here'), tied('fickle')]
  /** The group as it is by now: `here` stands where the third page of the next sweep begins. */
  const stages = [
    [fickle, ...others.toSpliced(184, 0, here)],
    others.toSpliced(171, 0, here),
    [...others.toSpliced(171, 0, here).slice(1), fickle],
  ]
  // Before the third page of the first two sweeps, a record of the pages before it is deleted.
  const sweeps = [93, 86]
  let stage = 0
  let last: number | undefined
  const { outcome, ids } = await readThrough({
    fetchPage: (request) => {
      const { page, pageSize } = request
      if (page === 3 && last === 2 && pageSize === sweeps[stage]) stage += 1
      last = pageSize === sweeps[stage] ? page : undefined
      const list = listOf({ size: 0 })
      list.versions = [[record('older', -1), ...stages[stage]!, record('newer', 1)]]
      return list.fetchPage(request)
    },
  })
  expect(stage).toBe(2)
  expect(outcome.verdict).toBe('proven')
  expect(ids).toContain('here')
})

test('a record that slides past both sweeps while another one comes and goes is taken: the places are counted after them, too', async () => {
  const others = Array.from({ length: 349 }, (_, at) => tied(`t${at}`))
  const [here, fickle] = [tied('here'), tied('fickle')]
  const sweeps = [93, 86]
  let [done, page] = [0, 0]
  const { outcome, ids } = await readThrough({
    fetchPage: (request) => {
      const { pageSize } = request
      const isSwept = pageSize === sweeps[done] && request.page === page + 1
      page = isSwept ? request.page : 0
      const [low, high] = [(request.page - 1) * pageSize, request.page * pageSize]
      const among = isSwept
        ? // `here` stands on a page that is not asked for now, and `fickle` is there.
          [...others, fickle].toSpliced(low > 0 ? 0 : high, 0, here)
        : // Only after both sweeps, `fickle` is counted.
          [...others.toSpliced(171, 0, here), ...(done < 2 ? [] : [fickle])]
      if (isSwept && high > 351) [done, page] = [done + 1, 0]
      const list = listOf({ size: 0 })
      list.versions = [[record('older', -1), ...among, record('newer', 1)]]
      return list.fetchPage(request)
    },
  })
  expect(done).toBe(2)
  expect(outcome.verdict).toBe('proven')
  expect(ids).toContain('here')
})

describe('a record that was there throughout is taken although two sweeps agree without it', () => {
  const group = Array.from({ length: 340 }, (_, at) => tied(`t${at}`))
  const sizes = [93, 86]

  /**
   * Reads a list in which records older than the group come and go.
   * @param options.older how many there are at a request: of a page of a sweep, or of one with which places are counted
   */
  async function readAmong(options: {
    older: (at: { page: number; isSwept: boolean; sweep: number }) => number
    lost?: number
    state?: RangeState
  }) {
    let [sweep, swept, left] = [0, 0, Infinity]
    const { outcome, ids } = await readThrough({
      ...(options.state && { state: options.state }),
      fetchPage: (request) => {
        const { page, pageSize } = request
        const isSwept = pageSize === sizes[sweep] && page === swept + 1
        // Until the places are counted after the second sweep, which two requests do.
        if (left-- === 0) sweep = 2
        const count = options.older({ page, isSwept, sweep })
        const older = Array.from({ length: count }, (_, at) => record(`${at - count}`, at - count))
        const list = listOf({ size: 0 })
        list.versions = [[...older, ...group, record('newer', 1)]]
        const isLast = isSwept && page * pageSize >= list.now.length
        swept = isSwept && !isLast ? page : 0
        if (isLast && sweep === 1) left = 2
        if (isLast) sweep = 1
        if (isSwept && page === options.lost)
          return Promise.reject(new ServiceFault({ ...failure, status: 503 }))
        return list.fetchPage(request)
      },
    })
    expect(sweep).toBe(2)
    expect(outcome.verdict).toBe('proven')
    expect(group.filter(({ id }) => !ids.includes(id))).toEqual([])
  }

  test('because older records move it from page to page, and while its places are counted', () =>
    readAmong({
      older({ page, sweep }) {
        // t150 stands where the third page of each sweep begins, until an older record is deleted before that page.
        const before = [35, 21, 21][sweep]!
        // Another one is there only while the first place of the group is looked for.
        return sweep < 2 && page <= 2 ? before + 1 : before
      },
    }))

  test('because the first page of each is lost, and older records move it while its places are counted', () =>
    readAmong({
      older({ page, isSwept, sweep }) {
        // t0 to t19 are all that the lost page has of it.
        const before = [73, 66, 99][sweep]!
        if (isSwept || sweep === 2) return before
        return page === 1 ? before + 19 : before - 1
      },
      lost: 1,
    }))

  test('because the last page of each is lost, which a range begins with, and older records move it while its places are counted', () =>
    readAmong({
      older({ page, isSwept, sweep }) {
        // t320 to t339 are all that the lost page has of it.
        const before = [52, 24, 24][sweep]!
        if (isSwept || sweep === 2) return before
        return page === 1 ? before + 1 : before - 19
      },
      lost: 5,
      state: { ...startState(readOptions), frontier: { at: start, closed: false, ids: [] } },
    }))
})

test('the end that a list claims is not taken for that of its newest group, which may go on behind it', async () => {
  const group = Array.from({ length: 400 }, (_, at) => tied(`t${at}`))
  let requests = 0
  const { outcome, ids } = await readThrough({
    fetchPage: (request) => {
      const all = [record('older', -1), ...group, record('newer', 1)]
      const list = listOf({ size: 0 })
      // After the two windows that reach into the group, the newer record is deleted, and the list is cut at an old count.
      const end = ++requests <= 2 ? 402 : request.ordering === 'created' ? 200 : 401
      list.versions = [all.slice(0, end)]
      return list.fetchPage(request)
    },
  })
  expect(outcome.verdict).toBe('proven')
  expect(ids).toEqual(expect.arrayContaining(group.map(({ id }) => id)))
})

describe('what a service may do', () => {
  test.for([undefined, 0, 7, 1400, 1600, 5000])(
    'a count of %s for 1500 records costs a few requests',
    async (count) => {
      const list = listOf({ size: 1500 })
      const fetchPage = serving(list, (page) => ({ ...page(), count }))
      const { outcome } = await expectWhole(list, { fetchPage })
      expect(outcome.requests).toBeLessThan(55)
    },
  )

  test('a `next` that is not the page that follows is ignored, and told', async () => {
    const list = listOf({ size: 1500 })
    const fetchPage = serving(list, (page) => ({ ...page(), next: 'http://elsewhere/list/?page=7777' }))
    const { outcome } = await expectWhole(list, { fetchPage })
    expect(outcome.notes).toEqual([
      `${outcome.requests} responses linked to a next page other than the following one; the links were ignored`,
    ])
  })

  test.for([
    { cap: 50, perPage: 1.3 },
    { cap: 20, perPage: 1.6 },
  ])('pages capped at $cap are found out and chained all the same', async ({ cap, perPage }) => {
    const list = listOf({ size: 2000, cap })
    const { outcome } = await expectWhole(list, { fetchPage: list.fetchPage })
    expect(outcome.requests / (2000 / cap)).toBeLessThan(perPage)
  })

  test.for([
    ['its', undefined],
    ['a wrong', '/list/?page=9999'],
    ['no', null],
  ])(
    'a read notices records that are removed after paging, also on a single page, with %s `next`',
    async ([, wrong]) => {
      for (const size of [60, 700]) {
        const list = listOf({ size })
        const fetchPage = serving(list, (page, request) => ({
          ...page(),
          ...(wrong !== undefined && { next: wrong ?? undefined }),
          // In a long list, page 1 alone would not show it.
          records: page().records.filter((_, at) => at !== 5 || (size > 100 && request.page === 1)),
        }))
        const { outcome } = await readThrough({ fetchPage })
        expect(outcome.verdict, `${size} records`).toBe('unproven')
        expect(outcome.reasons).toEqual([expect.stringContaining('instead of')])
      }
    },
  )

  test.each([2, 3, 5])(
    'a record whose time is not readable in every response number %i is asked for again, and written once',
    async (every) => {
      const list = listOf({ size: 700 })
      let responses = 0
      const { ids, outcome } = await readThrough({
        fetchPage: async (request) => {
          const page = await list.fetchPage(request)
          responses += 1
          if (responses % every !== 0) return page
          const records = page.records.map((record) => ({ ...(record as object), created: 7 }))
          return {
            ...page,
            records: [...records.slice(0, 5), ...page.records.slice(5, -5), ...records.slice(-5)],
          }
        },
      })
      expect(ids.toSorted()).toEqual(list.now.map(({ id }) => id).toSorted())
      expect(outcome.verdict).toBe('proven')
    },
  )

  test('an item that is not an object or has no id is handed out as rejected, and breaks nothing', async () => {
    const list = listOf({ size: 400 })
    const { at, updated } = list.now[150] ?? tied('')
    list.versions = [
      list.now.with(150, { id: '', at, updated, record: { id: null, created: toTimestamp(at) } }),
    ]
    const rejected: unknown[] = []
    const read = readList({ ...options, fetchPage: list.fetchPage })
    for (let step = await read.next(); ; step = await read.next()) {
      if (step.done === true) {
        expect(step.value).toMatchObject({ verdict: 'proven', records: 399, rejected: 1 })
        break
      }
      rejected.push(...step.value.rejected)
    }
    expect(rejected).toEqual([{ id: null, created: toTimestamp(at) }])
  })

  test('a list whose newest records are all deleted while it is read is linked at its top again', async () => {
    const list = listOf({ size: 1000 })
    let requests = 0
    const fetchPage: FetchPage = async (request) => {
      if (++requests === 4) list.versions = [list.now.slice(0, 500)]
      return list.fetchPage(request)
    }
    const { outcome, ids } = await readThrough({ fetchPage })
    expect(outcome.verdict).toBe('proven')
    expect(list.now.every(({ id }) => ids.includes(id))).toBe(true)
    expect(outcome.requests).toBeLessThan(14)
  })

  test('500 records that come back in the middle cost some requests', async () => {
    const list = listOf({ size: 2000 })
    const back = list.now.slice(100, 600)
    const whole = list.now
    list.versions = [whole.toSpliced(100, 500)]
    let requests = 0
    const fetchPage: FetchPage = async (request) => {
      if (++requests === 6) list.versions = [whole]
      return list.fetchPage(request)
    }
    const { outcome, ids } = await readThrough({ fetchPage })
    expect(outcome.verdict).toBe('proven')
    expect(new Set(ids).size).toBe(ids.length)
    const lost = whole.filter(({ id }) => !ids.includes(id) && !back.some((item) => item.id === id))
    expect(lost).toEqual([])
    expect(outcome.linksRepaired).toBeGreaterThan(0)
    expect(outcome.requests).toBeLessThan(45)
  })
})

const options = {
  ...readOptions,
  now: () => Date.parse('2026-11-21T12:00:00Z'),
  idSet: () => Promise.resolve(createIdSet([])),
}

describe('what was asked for', () => {
  test('data of the other mode ends the read at once', async () => {
    const list = listOf({ size: 300 })
    const fetchPage = serving(list, (page) => ({
      ...page(),
      records: page().records.map((record) => ({ ...(record as object), test_mode: true })),
    }))
    await expect(readThrough({ fetchPage, testMode: false })).rejects.toThrow(TestModeMismatch)
    const { outcome } = await readThrough({ fetchPage, testMode: true })
    expect(outcome).toMatchObject({ verdict: 'proven', testModeCarried: true })
  })

  test('a filter that is ignored makes it unproven, and records that do not match are left out', async () => {
    const list = listOf({ size: 500 })
    list.versions = [
      list.now.map((item, at) => ({ ...item, record: { ...item.record, name: `n${at % 5}` } })),
    ]
    const { outcome, ids } = await readThrough({
      fetchPage: list.fetchPage,
      filters: { name: 'N3', country: 'CL' },
    })
    expect(ids).toHaveLength(100)
    expect(outcome.reasons).toEqual([
      'the service ignores the filter name: it returned 400 records that do not match; they were left out',
    ])
    expect(outcome.uncheckableFilters).toEqual(['country'])
    expect(outcome.scope.join(' ')).toContain('The records do not show whether the service honoured country')
  })

  test('a cap ends it also while it asks whether page 1 still comes', async () => {
    const list = listOf({ cap: 10 })
    for (let maxRequests = 5; maxRequests < 20; maxRequests++) {
      let isDown = false
      const fetchPage: FetchPage = (request) => {
        isDown ||= request.page > 3
        if (!isDown) return list.fetchPage(request)
        for (let time = 0; time < 2; time++) request.beforeSend()
        throw new ServiceFault({ method: 'GET', path: '/customers/', status: 503 })
      }
      const read = readThrough({ fetchPage, maxRequests }).catch((error: Error) => error.name)
      expect([await read].flat()).not.toContain('RequestsUsedUp')
    }
  })

  test('a cap that the read stays under changes nothing', async () => {
    const list = listOf({ size: 150 })
    const { outcome } = await expectWhole(list, { fetchPage: list.fetchPage, maxRequests: 3 })
    expect(outcome.capped).toBe(false)
  })

  test('requests that were not even sent, as without a token, do not use up a cap', async () => {
    const list = listOf({ size: 50 })
    let state: RangeState | undefined
    for (let attempt = 1; attempt <= 5; attempt++) {
      const fetchPage = () => Promise.reject(new Error('no token'))
      const read = readList({ ...options, fetchPage, maxRequests: 2, ...(state && { state }) })
      await expect(async () => {
        for await (const step of read) state = step.state
      }).rejects.toThrow('no token')
    }
    const { outcome } = await readThrough({
      fetchPage: list.fetchPage,
      maxRequests: 2,
      ...(state && { state }),
    })
    expect(outcome).toMatchObject({ verdict: 'proven', requests: 2 })
  })

  test("the promise goes up to the service's clock, else ours, less the read lag", async () => {
    const list = listOf({ size: 10 })
    const { outcome } = await readThrough({ ...options, fetchPage: list.fetchPage })
    expect(outcome).toMatchObject({ clock: 'local', completeThrough: '2026-11-21T11:59:00.000000Z' })
    const serviceTime = Date.parse('2026-11-21T12:00:07Z')
    const other = await readThrough({ ...options, fetchPage: list.fetchPage, serviceTime })
    expect(other.outcome).toMatchObject({ clock: 'service', completeThrough: '2026-11-21T11:59:07.000000Z' })
  })
})

describe('requests that are lost', () => {
  test('an unreachable service ends the read with its error, and the read resumes from the last state', async () => {
    const list = listOf({ size: 2000 })
    let away = false
    const fetchPage = serving(list, (page) => {
      if (away) throw new ServiceFault({ ...failure, status: 503 })
      return page()
    })
    const ids: unknown[] = []
    let state: RangeState | undefined
    const first = readList({ ...options, fetchPage })
    await expect(async () => {
      for (;;) {
        const step = await first.next()
        if (step.done === true) return
        ids.push(...step.value.records.map(({ id }) => id))
        state = step.value.state
        away = ids.length > 800
      }
    }).rejects.toThrow(ServiceFault)
    away = false
    const second = readList({ ...options, fetchPage, ...(state && { state }) })
    for (let step = await second.next(); ; step = await second.next()) {
      if (step.done === true) {
        expect(step.value).toMatchObject({ verdict: 'proven', records: 2000 })
        break
      }
      ids.push(...step.value.records.map(({ id }) => id))
    }
    expect(new Set(ids).size).toBe(2000)
    expect(ids).toHaveLength(2000)
  })

  test.for([
    ['a refusal of the token', new Forbidden({ ...failure, status: 403 })],
    ['a JSON 404 for the first page, which is not an empty list,', new NotFound({ ...failure, status: 404 })],
  ])('%s is thrown as it is', async ([, error]) => {
    await expect(readThrough({ fetchPage: () => Promise.reject(error) })).rejects.toBe(error)
  })
})

describe('leaving the loop', () => {
  test('a state is small, and a read resumes from it after it was JSON', async () => {
    const list = listOf({ size: 3000, ties: 0.6, shuffledTies: true })
    const read = readList({ ...options, fetchPage: list.fetchPage })
    let longest = 0
    for await (const { state } of read) {
      longest = Math.max(longest, JSON.stringify(state).length)
      expect(JSON.parse(JSON.stringify(state))).toEqual(state)
    }
    expect(longest).toBeLessThan(1500)
  })
})
