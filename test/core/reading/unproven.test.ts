import { describe, expect, test } from 'vitest'
import { Refused, ServiceFault } from '../../../core/billing/errors.ts'
import type { ListPage } from '../../../core/billing/reply.ts'
import { toFacts } from '../../../core/exports/read-facts.ts'
import { toManifestView } from '../../../core/destinations/manifest/manifest-view.ts'
import { toManifest } from '../../../core/destinations/manifest/to-manifest.ts'
import { newIdState, addResult, toIdOutcome } from '../../../core/reading/by-id/id-state.ts'
import { toTimestamp } from '../../../core/reading/instant.ts'
import type { ReadOutcome } from '../../../core/reading/outcome.ts'
import type { FetchPage, PageRequest } from '../../../core/reading/source.ts'
import type { ReadState } from '../../../core/reading/state.ts'
import { toReportPage } from '../../../core/runs/view/html.ts'
import { createPlan } from '../../system/export/plan.ts'
import { DriftingList, quiet, start, type ListOptions } from './drifting-list.ts'
import { readThrough } from './read-through.ts'

const calm: ListOptions = {
  seed: 5,
  size: 700,
  ties: 0,
  drift: quiet,
  shuffledTies: false,
  countLag: 0,
  replicaLag: 0,
  staleShare: 0,
  gatewayFaults: 0,
  shortWindows: 0,
}
const listOf = (options: Partial<ListOptions> = {}) => new DriftingList({ ...calm, ...options })
const failure = { method: 'GET', path: '/customers/', byService: true }

/** A list whose answers are changed on their way. */
const changed =
  (change: (page: () => ListPage, request: PageRequest) => ListPage, list = listOf()): FetchPage =>
  (request) =>
    Promise.resolve().then(() => change(() => list.serve(request), request))

const served = Date.parse('2026-11-21T12:00:00Z')
const options = { now: () => served, serviceTime: served, concurrency: 1 }

/** One service, or one question, for each reason for which a read can be unproven. */
const unproven: Record<string, () => Parameters<typeof readThrough>[0]> = {
  'capped at 3 pages': () => ({ fetchPage: listOf().fetchPage, maxRequests: 3 }),
  'responses were older than the read': () => ({
    fetchPage: changed((page) => ({ ...page(), servedAt: served - 600_000 })),
  }),
  'ordering=created is not honoured': () => {
    const list = listOf()
    list.versions = [list.now.toSorted((one, other) => one.id.localeCompare(other.id))]
    return { fetchPage: (request) => list.fetchPage({ ...request, ordering: 'created' }) }
  },
  'the list is not ordered': () => ({
    fetchPage: changed((page, { ordering }) => {
      if (ordering !== undefined)
        throw new Refused({ ...failure, status: 400, messages: ['no such ordering'] })
      return page()
    }),
  }),
  'the service ignores the filter name': () => {
    const list = listOf()
    const name = (at: number) => ({ name: `n${at % 5}` })
    list.versions = [list.now.map((item, at) => ({ ...item, record: { ...item.record, ...name(at) } }))]
    return { fetchPage: list.fetchPage, filters: { name: 'n3' } }
  },
  'records seem to be removed': () => ({
    fetchPage: changed((page) => ({ ...page(), records: page().records.filter((_, at) => at !== 5) })),
  }),
  'the service does not follow the page size': () => {
    const list = listOf({ size: 300 })
    return { fetchPage: (request) => list.fetchPage({ ...request, pageSize: 40 }) }
  },
  'the service returns at most 10 records a page': () => ({ fetchPage: listOf({ cap: 10 }).fetchPage }),
  'the list continued past page 80': () => {
    const list = listOf({ size: 300, cap: 10 })
    const again = (request: PageRequest) => list.serve({ ...request, page: 1 })
    return { fetchPage: changed((page, request) => (request.page > 30 ? again(request) : page()), list) }
  },
  'have no readable created': () => {
    const list = listOf()
    list.versions = [list.now.with(37, { ...list.now[37]!, record: { id: 'odd', created: 'yesterday' } })]
    return { fetchPage: list.fetchPage }
  },
  'have no readable key': () => {
    const list = listOf({ size: 2_600 })
    const undated = list.now.map((item, at) => (at % 2 === 0 ? item : { ...item, record: { id: item.id } }))
    list.versions = [undated]
    return { fetchPage: list.fetchPage }
  },
  'although the newest page could be read': () => {
    const list = listOf()
    const poison = list.now[450]?.record
    return {
      fetchPage: changed((page) => {
        if (page().records.includes(poison)) throw new ServiceFault({ ...failure, status: 500 })
        return page()
      }, list),
    }
  },
  'windows held both a newer and an older record': () => {
    const list = listOf()
    list.versions = [list.now.map((item, at) => (at < 50 ? item : { ...item, record: { id: item.id } }))]
    return { fetchPage: list.fetchPage }
  },
  'the newest records kept changing: 10 reads': () => {
    const list = listOf()
    // Two servers of which one has only the newest records, and the other only the oldest.
    const [old, young] = [list.now.slice(0, 350), list.now.slice(350)]
    return {
      fetchPage: (request) => {
        list.versions = [request.ordering === '-created' ? young : old]
        return Promise.resolve({ ...list.serve(request), count: 350 })
      },
    }
  },
  'kept changing: 10 sweeps': () => {
    const list = listOf({ groups: [{ records: 300, after: 0.5 }], shuffledTies: true })
    return { fetchPage: list.fetchPage }
  },
  'the whole list, kept changing': () => {
    const list = listOf({ size: 0 })
    const record = (at: number) => ({ id: `t${at}`, created: toTimestamp(start) })
    const item = (at: number) => ({ id: `t${at}`, at: start, updated: start, record: record(at) })
    let serial = 0
    return {
      fetchPage: (request) => {
        list.versions = [Array.from({ length: 30 }, (_, at) => item(at === 0 ? 1_000 + serial++ : at))]
        return list.fetchPage(request)
      },
    }
  },
}

/** Reasons that need a list that moves in one particular way: the read continues after noting one. */
const noted = [
  'the group of records at 2026-01-01T00:00:00Z moved during the search for its borders',
  'the group of records at 2026-01-01T00:00:00Z has 60000 records, too many to sweep',
  'the end of the list moved in each of 6 tries to read it',
  'page 5 could not be read: ServiceFault',
]

function expectNoClaim(outcome: ReadOutcome, records: number): void {
  expect(outcome.verdict).toBe('unproven')
  expect(outcome.completeThrough).toBeNull()
  expect(outcome.scope).not.toMatch(/every record|throughout|created up to|updated since/i)
  expect(outcome.scope).toMatch(new RegExp(`^${records} records of customers that the service listed`))
  expect(outcome.scope).toContain('missing')
}

/** What is published of a read, and what of that is shown. */
function publish(outcome: ReadOutcome | ReturnType<typeof toIdOutcome>, facts = {}) {
  const read = { startedAt: served } as ReadState
  const checkpoint = {
    name: '',
    parts: [],
    drift: {},
    read,
    savedAt: new Date(served).toISOString(),
    outcome,
  }
  const plan = createPlan()
  const manifest = toManifest({
    publication: {
      run: 'run',
      resource: 'customers',
      workspace: 'acc_1',
      baseUrl: '',
      testMode: false,
      mode: 'full',
      filters: {},
      excluded: [],
      hashed: [],
      tables: [],
      parts: [],
      versions: {},
      folder: '',
      capped: 'capped' in outcome && outcome.capped,
      facts: { ...toFacts({ plan, resource: 'customers', checkpoint }), ...facts },
    },
    destination: 'csv',
    arrived: { tables: [], rejected: { rows: 0, files: [] } },
  })
  return { manifest, page: toReportPage(toManifestView(manifest)) }
}

describe('a read that is not proven claims nothing about what it did not see', () => {
  test.each(Object.entries(unproven))('because %s', async (reason, service) => {
    const { outcome, ids } = await readThrough({ ...options, ...service() })
    expect(outcome.reasons.join('\n')).toContain(reason)
    expectNoClaim(outcome, ids.length)
    const { manifest, page } = publish(outcome)
    expect(manifest).toMatchObject({ verdict: 'unproven', completeThrough: null, scope: [outcome.scope] })
    expect(page).not.toMatch(/every record|complete through/i)
    expect(page).toContain('may be missing')
  })

  test.each(noted)('because %s, noted before it went on', async (reason) => {
    const { fetchPage } = listOf()
    const { outcome: proven } = await readThrough({ ...options, fetchPage })
    expect(proven.completeThrough).toBe('2026-11-21T11:59:00.000000Z')
    const pass = { phase: 'chain', page: 1, topByEnd: false } as const
    const counts = { windows: 0, linksRepaired: 0, records: 0, rejected: 0, duplicatesDropped: 0 }
    const state: ReadState = {
      version: 1,
      clock: 'service',
      startedAt: served,
      completeThrough: served * 1000,
      pass,
      statusesRead: -1,
      hiddenFound: false,
      requests: { made: 0, oddNext: 0 },
      counts,
      seen: { ignored: {}, testMode: false },
      undated: [],
      ties: [],
      addCaveat: [],
      capped: false,
      reasons: [reason],
    }
    const { outcome, ids } = await readThrough({ ...options, fetchPage, state })
    expect(outcome.reasons).toEqual([reason])
    expectNoClaim(outcome, ids.length)
  })

  test('because of an id that could not be read', () => {
    const before = addResult(newIdState({ startedAt: served, asked: 2 }), { kind: 'missing', id: '1' }, 1)
    const state = addResult(before, { kind: 'open', id: '2', why: 'it was refused' }, 2)
    const outcome = toIdOutcome({ resource: 'creditnotes', state, notes: [] })
    expect(outcome).toMatchObject({ verdict: 'unproven', scope: expect.not.stringMatching(/^Each of/) })
    expect(outcome.scope).toContain('Could not be read: 1.')
  })
})

test('what an older version kept of an unproven read promises nothing either', async () => {
  const { outcome } = await readThrough({ ...options, fetchPage: listOf().fetchPage, maxRequests: 3 })
  const { manifest, page } = publish(outcome, { completeThrough: '2026-11-21T11:59:00.000000Z' })
  expect(manifest.completeThrough).toBeNull()
  expect(page).not.toContain('2026-11-21T11:59')
})

test('a proven read says what was rejected', async () => {
  const list = listOf()
  list.versions = [list.now.with(5, { ...list.now[5]!, record: { ...list.now[5]!.record, id: null } })]
  const { outcome } = await readThrough({ ...options, fetchPage: list.fetchPage })
  expect(outcome.verdict).toBe('proven')
  expect(outcome.scope).toContain('Records without a usable id, in rejected.jsonl: 1.')
})
