import { describe, expect, test } from 'vitest'
import { toManifest } from '../../../core/destinations/to-manifest.ts'
import { toFacts } from '../../../core/exports/publish.ts'
import type { ReadOutcome } from '../../../core/reading/outcome.ts'
import { type RangeState, startState } from '../../../core/reading/range-state.ts'
import { noDrift } from '../../../core/tables/drift.ts'
import { createPlan } from '../../system/export/plan.ts'
import { readThrough } from './read-through.ts'
import { listOf } from './lists.ts'
import { options, served, unproven } from './unproven-services.ts'
import { noTotals } from '../../../core/tables/totals.ts'

/** How many records come, where that is not all 700 of the list. */
const come: Record<string, number> = {
  'capped at 3 pages': 265,
  'the service ignores the filter name': 140,
  'records seem to be removed': 692,
  'the service does not follow the page size': 300,
  'the list continued past page 120': 1_200,
  'although the newest page could be read\npage 5 could not be read': 640,
  'windows held both a newer and an older record': 200,
  'the newest records kept changing: 10 reads': 450,
  'kept changing: 10 sweeps': 1_000,
}

function expectNoClaim(outcome: ReadOutcome, records: number): void {
  expect(outcome.verdict).toBe('unproven')
  expect(outcome.completeThrough).toBeNull()
  expect(outcome.scope.join(' ')).not.toMatch(/every record|throughout|created up to|updated since/i)
  expect(outcome.scope.join(' ')).toMatch(
    new RegExp(`^${records} records of customers that the service listed`),
  )
  expect(outcome.scope.join(' ')).toContain('missing')
}

/** What is published of a read, and what of that is shown. */
function publish(outcome: ReadOutcome, facts = {}) {
  const read = { startedAt: served } as RangeState
  const checkpoint = {
    name: '',
    parts: [],
    drift: noDrift(),
    totals: noTotals(),
    read,
    savedAt: new Date(served).toISOString(),
    outcome,
  }
  const plan = createPlan()
  const published = {
    ...toFacts({
      plan,
      resource: 'customers',
      checkpoint,
      layout: { tables: [] },
    }),
    ...facts,
  }
  const manifest = toManifest({
    publication: {
      run: 'run',
      begunAt: '',
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
      facts: published,
    },
    destination: 'csv',
    facts: published,
    arrived: { tables: [], rejected: { rows: 0, files: [] } },
  })
  return { manifest, claims: manifest.scope.join(' ') }
}

describe('a read that is not proven has each record that came once, and claims nothing about the others', () => {
  test.each(Object.entries(unproven))('because %s', async (reason, service) => {
    const { outcome, ids } = await readThrough({ ...options, ...service() })
    expect([ids.length, new Set(ids).size]).toEqual([come[reason] ?? 700, ids.length])
    expect(outcome.reasons.join('\n')).toContain(reason)
    expectNoClaim(outcome, ids.length)
    const { manifest, claims } = publish(outcome)
    expect(manifest).toMatchObject({ verdict: 'unproven', completeThrough: null, scope: outcome.scope })
    expect(claims).not.toMatch(/every record|complete through/i)
    expect(claims).toContain('may be missing')
  })

  test('because of a reason that was noted before it went on', async () => {
    const reason = 'page 5 could not be read: ServiceFault'
    const { fetchPage } = listOf()
    const { outcome: proven } = await readThrough({ ...options, fetchPage })
    expect(proven.completeThrough).toBe('2026-11-21T11:59:00.000000Z')
    const state = { ...startState({ ...options, readLagMs: 0 }), reasons: [reason] }
    const { outcome, ids } = await readThrough({ ...options, fetchPage, state })
    expect(outcome.reasons).toEqual([reason])
    expectNoClaim(outcome, ids.length)
  })
})

test('an unproven read is published without a moment up to which it is complete, whatever its facts say', async () => {
  const { outcome } = await readThrough({ ...options, fetchPage: listOf().fetchPage, maxRequests: 3 })
  expect(outcome.scope).toContainEqual(expect.stringMatching(/^The read ended at its page limit, so later/))
  const { manifest, claims } = publish(outcome, { completeThrough: '2026-11-21T11:59:00.000000Z' })
  expect(manifest.completeThrough).toBeNull()
  expect(claims).not.toContain('2026-11-21T11:59')
})

test('a proven read says what was rejected', async () => {
  const list = listOf()
  list.versions = [list.now.with(5, { ...list.now[5]!, record: { ...list.now[5]!.record, id: null } })]
  const { outcome } = await readThrough({ ...options, fetchPage: list.fetchPage })
  expect(outcome.verdict).toBe('proven')
  expect(outcome.scope.join(' ')).toContain('Records without a usable id, in rejected.jsonl: 1.')
})
