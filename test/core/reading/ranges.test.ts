import { describe, expect, test } from 'vitest'
import { Refused, ServiceFault, Unauthorized } from '../../../core/billing/errors.ts'
import { subscriptions } from '../../../core/billing/resources/subscriptions.ts'
import { toInstant, toTimestamp } from '../../../core/billing/instants.ts'
import { joinRanges, planRead, type RangePlan, startRange } from '../../../core/reading/ranges.ts'
import { readList, readRange } from '../../../core/reading/read-list.ts'
import {
  newPass,
  type PageRequest,
  type Range,
  type RangeState,
  type ReadOptions,
  startState,
} from '../../../core/reading/range-state.ts'
import { createRandom } from './drifting-list.ts'
import { hiding, rows } from './hiding-service.ts'
import { readInRanges } from './read-in-ranges.ts'
import { createIdSet, readOptions, readThrough } from './read-through.ts'
import { failure, listOf } from './lists.ts'
import { options, served, unproven } from './unproven-services.ts'

const inFour = { divide: { count: 700, most: 4 } }

describe('a read in ranges is as unproven as the read of the whole list', () => {
  // A read with a cap is not divided.
  const { 'capped at 3 pages': _capped, ...services } = unproven
  test.each(Object.entries(services))('because %s', async (reason, service) => {
    const { outcome, ids } = await readInRanges({ ...options, ...service() }, inFour)
    expect(outcome.verdict).toBe('unproven')
    expect(outcome.completeThrough).toBeNull()
    expect(outcome.reasons.join('\n')).toContain(reason)
    expect(new Set(ids).size).toBe(ids.length)
    expect(outcome.records).toBe(ids.length)
  })
})

test('a record without a readable created is kept once, however many ranges meet it', async () => {
  const list = listOf()
  const odd = { id: 'odd', created: 'yesterday' }
  const met = new Set<string>()
  const { outcome, ids } = await readInRanges(
    {
      ...options,
      fetchPage: async (request) => {
        const page = await list.fetchPage(request)
        // Many windows show it.
        if (request.ordering === 'created' && request.pageSize > 50 && page.records.length > 50) {
          met.add(String(request.page))
          return { ...page, records: page.records.with(30, odd) }
        }
        return page
      },
    },
    inFour,
  )
  expect(met.size).toBeGreaterThan(3)
  expect(outcome.verdict).toBe('unproven')
  expect(ids.filter((id) => id === 'odd')).toHaveLength(1)
})

test('a last page that lacks a record starts no range: the newest page is asked instead', async () => {
  const list = listOf()
  const bound = list.now[695]!.at
  let short = 0
  const { outcome, ids } = await readInRanges(
    {
      ...options,
      fetchPage: (request) => {
        const page = list.serve(request)
        const isLast = request.ordering === 'created' && page.next === null && request.page > 1
        if (isLast) short++
        return Promise.resolve(isLast ? { ...page, records: page.records.toSpliced(3, 1) } : page)
      },
    },
    {
      divide: (read) => ({
        root: startState(read),
        ranges: [{ range: { downTo: bound } }, { range: { upTo: bound }, place: 696 }],
      }),
    },
  )
  expect(short).toBeGreaterThan(0)
  expect(outcome.verdict).toBe('proven')
  expect(new Set(ids)).toEqual(new Set(list.now.map(({ id }) => id)))
})

test('a bound above all records, where the newest are one group, costs requests, never the proof', async () => {
  const list = listOf()
  const [before, at] = [list.now.slice(0, 550), list.now[550]!.at]
  const tied = list.now
    .slice(550)
    .map((item) => ({ ...item, at, record: { ...item.record, created: toTimestamp(at) } }))
  list.versions = [[...before, ...tied]]
  const upTo = at + 5
  const { outcome, ids } = await readInRanges(
    { ...options, fetchPage: list.fetchPage },
    {
      divide: (read) => ({
        root: startState(read),
        ranges: [{ range: { downTo: upTo } }, { range: { upTo }, place: 600 }],
      }),
    },
  )
  expect(outcome).toMatchObject({ verdict: 'proven', records: 700 })
  expect(new Set(ids).size).toBe(700)
})

test.each([
  ['0001-01-01T00:00:00Z', 'oldest'],
  ['9999-12-31T23:59:59Z', 'newest'],
])(
  'a bound at records of %s, whose microseconds no number counts one by one, belongs to one range only',
  async (created, end) => {
    const list = listOf()
    const at = toInstant(created)!
    expect(at - 1).toBe(at)
    const isOdd = (place: number) => (end === 'oldest' ? place < 250 : place >= 450)
    list.versions = [
      list.now.map((item, place) =>
        isOdd(place) ? { ...item, at, record: { ...item.record, created } } : item,
      ),
    ]
    const { outcome, ids, plan } = await readInRanges({ ...options, fetchPage: list.fetchPage }, inFour)
    expect(plan.ranges.map(({ range }) => range.downTo)).toContain(at)
    expect(outcome).toMatchObject({ verdict: 'proven', records: 700 })
    expect(new Set(ids).size).toBe(700)
  },
)

test.each([50, 20])('pages capped at %i are found out before the ranges begin', async (cap) => {
  const list = listOf({ cap })
  const { outcome, ids } = await readInRanges({ ...options, fetchPage: list.fetchPage }, inFour)
  expect(outcome).toMatchObject({ verdict: 'proven', records: 700 })
  expect(new Set(ids).size).toBe(700)
})

describe('the bounds of ranges', () => {
  const planFor = (fetchPage: ReadOptions['fetchPage'], most: number) =>
    planRead({
      resource: subscriptions,
      testMode: false,
      readLagMs: 0,
      now: () => served,
      idSet: () => Promise.reject(new Error('not wanted')),
      // Its statuses are not to be sampled.
      filters: { status: 'active' },
      fetchPage,
      count: 700,
      most,
    })

  test('lie just below records at even places', async () => {
    const list = listOf()
    const { root, ranges } = await planFor(list.fetchPage, 4)
    const at = (place: number) => list.now[place]!.at - 1
    expect(ranges).toEqual([
      { range: { downTo: at(525) } },
      { range: { upTo: at(525), downTo: at(350) }, place: 525 },
      { range: { upTo: at(350), downTo: at(175) }, place: 350 },
      { range: { upTo: at(175) }, place: 175 },
    ])
    expect(root).toMatchObject({ countBefore: 700, counts: { requests: 4 } })
  })

  test.each([
    ['fails', new ServiceFault({ ...failure, status: 500 })],
    ['is refused', new Refused({ ...failure, status: 400 })],
  ])('are one fewer where the request for one %s', async (_title, error) => {
    const list = listOf()
    const { ranges } = await planFor((request) => {
      if (request.pageSize === 1 && request.page === 351) throw error
      return list.fetchPage(request)
    }, 4)
    const bounds = [525, 175].map((place) => list.now[place]!.at - 1)
    expect(ranges.map(({ range }) => range.upTo)).toEqual([undefined, ...bounds])
  })

  test('are not planned while the service is down, or for a token that it refuses', async () => {
    const down = new ServiceFault({ ...failure, status: 503 })
    await expect(planFor(() => Promise.reject(down), 4)).rejects.toBe(down)
    const list = listOf()
    const refused = new Unauthorized({ ...failure, status: 401 })
    const plan = planFor(
      (request) => (request.pageSize === 1 ? Promise.reject(refused) : list.fetchPage(request)),
      4,
    )
    await expect(plan).rejects.toBe(refused)
  })

  test('descend, each once, whatever the answers to its questions are', async () => {
    const list = listOf()
    const places = [10, 500, undefined, 500, 300, 699]
    const { ranges } = await planFor((request) => {
      if (request.pageSize > 1) return list.fetchPage(request)
      const place = places.pop()
      const records = place === undefined ? [{ id: 'odd' }] : [list.now[place]!.record]
      return Promise.resolve({ ...list.serve({ ...request, page: 1 }), records })
    }, 7)
    const bounds = [699, 500, 300, 10].map((place) => list.now[place]!.at - 1)
    expect(ranges.map(({ range }) => range.upTo)).toEqual([undefined, ...bounds])
    expect(ranges.map(({ range }) => range.downTo)).toEqual([...bounds, undefined])
  })
})

describe('the whole of a read in ranges', () => {
  test('has the records of an undivided read in the same order', async () => {
    const { fetchPage } = listOf({ size: 2_000, ties: 0.3 })
    const whole = await readThrough({ ...options, fetchPage })
    const { outcome, ids } = await readInRanges(
      { ...options, fetchPage },
      { divide: { count: 2_000, most: 7 } },
    )
    expect(ids).toEqual(whole.ids)
    expect(outcome).toMatchObject({
      verdict: 'proven',
      records: whole.ids.length,
      completeThrough: whole.outcome.completeThrough,
      scope: whole.outcome.scope,
      countBefore: whole.outcome.countBefore,
      countAfter: whole.outcome.countAfter,
    })
  })

  test('says whether its records are known to be live data', async () => {
    const list = listOf()
    const read = async () => (await readInRanges({ ...options, fetchPage: list.fetchPage }, inFour)).outcome
    expect(await read()).toMatchObject({ testModeCarried: false })
    list.versions = [list.now.map((item) => ({ ...item, record: { ...item.record, test_mode: false } }))]
    expect(await read()).toMatchObject({ testModeCarried: true })
  })

  test('promises what the server of any range could show that was furthest behind', async () => {
    const list = listOf()
    let requests = 0
    const { outcome } = await readInRanges(
      {
        ...options,
        fetchPage: (request) => {
          requests++
          const servedAt = request.page === 4 && request.pageSize > 1 ? served - 3_000 : served
          return Promise.resolve({ ...list.serve(request), servedAt })
        },
      },
      inFour,
    )
    expect(requests).toBeGreaterThan(8)
    expect(outcome).toMatchObject({ verdict: 'proven', completeThrough: '2026-11-21T11:58:57.000000Z' })
  })

  test('goes by the lag that it began with, whatever that of the workers is which read its ranges', async () => {
    const list = listOf()
    const read = {
      ...options,
      fetchPage: (request: PageRequest) =>
        Promise.resolve({ ...list.serve(request), servedAt: served + 100_000 }),
    }
    const idSet = () => Promise.resolve(createIdSet([]))
    const plan = await planRead({ ...readOptions, ...read, idSet, readLagMs: 0, ...inFour.divide })
    const { outcome, certificate } = await readInRanges(
      { ...read, readLagMs: 60_000 },
      { divide: () => plan },
    )
    expect(plan.ranges).toHaveLength(4)
    expect(outcome).toMatchObject({ verdict: 'proven', completeThrough: '2026-11-21T12:00:00.000000Z' })
    expect(new Set(certificate.match(/"lag":\d+/g))).toEqual(new Set(['"lag":0']))
  })

  test('names the tie groups of all ranges', async () => {
    const list = listOf({
      size: 900,
      groups: [
        { records: 150, after: 0.1 },
        { records: 160, after: 0.8 },
      ],
    })
    const { outcome } = await readInRanges(
      { ...options, fetchPage: list.fetchPage },
      { divide: { count: 1_200, most: 4 } },
    )
    expect(outcome.ties.map(({ records }) => records)).toEqual([160, 150])
  })
})

describe('records that a list hides unless their status is requested', () => {
  const hidden = { resource: subscriptions, now: () => Date.parse('2026-11-21T12:00:00Z') }

  test('are found after all ranges, and written once', async () => {
    const all = rows(400)
    const { outcome, ids } = await readInRanges(
      { ...hidden, ...hiding(all, ['cancelled']) },
      { divide: { count: 300, most: 4 }, crash: 0.2, random: createRandom(1) },
    )
    expect(outcome).toMatchObject({ verdict: 'proven', hiddenFound: true, records: 400 })
    expect(ids.toSorted()).toEqual(all.map(({ id }) => id).toSorted())
  })

  test('are not suspected where another range has met them', async () => {
    const service = hiding(rows(400), [])
    const { outcome } = await readInRanges({ ...hidden, ...service }, { divide: { count: 400, most: 4 } })
    expect(outcome).toMatchObject({ verdict: 'proven', hiddenFound: false, statusCheck: 'clear' })
    const whole = hiding(rows(400), [])
    await readThrough({ ...hidden, ...whole })
    // No status was read apart: that is one request for the plan, and three for each range.
    expect(service.asked.length).toBeLessThanOrEqual(whole.asked.length + 1 + 4 * 3)
  })
})

describe('ranges are joined only', () => {
  const list = listOf()
  const read: ReadOptions = {
    resource: subscriptions,
    testMode: false,
    readLagMs: 0,
    now: () => served,
    fetchPage: list.fetchPage,
    idSet: () => Promise.reject(new Error('not wanted')),
  }
  const root = startState(read)
  const middle = list.now[350]!.at
  const planOf = (...ranges: Range[]): RangePlan => ({ root, ranges: ranges.map((range) => ({ range })) })
  const plan = planOf({ downTo: middle }, { upTo: middle })
  const ended = (range: Range, phase: RangeState['phase'] = 'ended', more: Partial<RangeState> = {}) => ({
    ...startRange(plan, { range }),
    ...newPass,
    phase,
    ...more,
  })
  const both = [ended({ downTo: middle }), ended({ upTo: middle })]

  test('if all have ended', () => {
    expect(joinRanges(plan, both)).toMatchObject({ kind: 'joined', state: { phase: 'ended' } })
    expect(joinRanges(plan, [both[0], undefined])).toEqual({ kind: 'open', left: [1] })
    expect(joinRanges(plan, [ended({ downTo: middle }, 'chain'), both[1]])).toEqual({
      kind: 'open',
      left: [0],
    })
  })

  test('or if one broke, to be read page by page', () => {
    const broken = ended({ upTo: middle }, 'pages', { reasons: ['it broke'] })
    expect(joinRanges(plan, [undefined, broken])).toMatchObject({
      kind: 'joined',
      state: { phase: 'pages', page: 1, reasons: ['it broke'] },
    })
  })

  test('and not if one is of an earlier read, or another range than was planned', () => {
    for (const other of [
      ended({ upTo: middle + 1 }),
      ended({ upTo: middle }, 'ended', { startedAt: served - 1 }),
    ])
      expect(() => joinRanges(plan, [both[0], other])).toThrow(
        expect.objectContaining({
          name: 'RangesMismatchError',
          message: expect.stringMatching(/not those that were planned\. Run the export again\.$/),
        }),
      )
  })

  test('and never called proven one by one', async () => {
    const state = ended({ upTo: middle })
    await expect(readList({ ...read, state }).next()).rejects.toThrow('no verdict of its own')
  })

  test('and only the oldest one says whether the list continues below', () => {
    const ofPart = { root: { ...root, range: { downTo: middle } }, ranges: [{ range: { downTo: middle } }] }
    const [newest, oldest] = [ended({ downTo: middle }, 'ended', { sawBound: true }), both[1]]
    expect(joinRanges(ofPart, [newest])).toMatchObject({ state: { sawBound: true } })
    expect(joinRanges(plan, [newest, oldest])).toMatchObject({
      state: expect.not.objectContaining({ sawBound: true }),
    })
  })

  test('and what cut one of them short is said of the whole read', async () => {
    const start = startRange(plan, plan.ranges[0]!)
    let last: RangeState | undefined
    for await (const { state } of readRange({ ...read, state: start, maxRequests: 1 })) last = state
    const joined = joinRanges(plan, [last, both[1]])
    if (joined.kind === 'open') throw new Error('the ranges have ended')
    const { value } = await readList({ ...read, state: joined.state, maxRequests: 1 }).next()
    expect(value).toMatchObject({ verdict: 'unproven', reasons: ['capped at 1 pages'], capped: true })
  })
})
