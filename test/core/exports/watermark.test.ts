import { describe, expect, test } from 'vitest'
import type { ListQuery } from '../../../core/billing/client.ts'
import { type changesThrough, toSeenClaims, toSince } from '../../../core/exports/watermark.ts'
import type { ListManners } from '../../../sandbox/options.ts'
import { type ExportPlan, markOf } from '../../../core/exports/plan.ts'
import { createPlan } from '../../system/export/plan.ts'
import { clientOf, startSandbox } from '../changes/engine.ts'
import { temporaryState } from '../state/temporary-folder.ts'
import { recordRead } from './record-read.ts'

type Read = Parameters<typeof changesThrough>[0]['manifest']

const proven: Read = {
  mode: 'full',
  verdict: 'proven',
  clock: 'service',
  completeThrough: '2026-11-20T00:00:00Z',
  newestUpdated: '2026-11-20T00:00:00Z',
  hiddenFound: false,
}

test('a worker that publishes values hashed with another key moves no watermark of its own', async () => {
  const state = await temporaryState()
  const plan = createPlan({ hash: ['customers.tax_id'] })
  const billing = clientOf(await startSandbox({ counts: { customers: 3 } }))
  const deps = { state, hashKey: 'mine', destinations: new Map(), billing }
  const next = async () =>
    (await toSince({ deps, plan, lists: ['customers'], lookbackSeconds: 0 })).since.customers
  const of = { deps, plan, resource: 'customers', destination: 'csv', manifest: proven } as const
  const publish = (readWith: string) => recordRead({ ...of, hashedWith: markOf(plan, readWith) })
  await publish('theirs')
  expect(await next()).toBeUndefined()
  await publish('mine')
  expect(await next()).toBe(Date.parse('2026-11-20T00:00:00Z'))
})

test.each<[string, Partial<ExportPlan>, Partial<ExportPlan>, boolean]>([
  ['a column of another list is left out', {}, { exclude: ['customers.email'] }, true],
  ['a column of another list is hashed with another key', {}, { hash: ['customers.tax_id'] }, true],
  ['a column of its own is left out', {}, { exclude: ['plans.name'] }, false],
  ['a column of its own is not left out any more', { exclude: ['plans.name'] }, {}, false],
  ['a column of its own is hashed', {}, { hash: ['plans.name'] }, false],
  ['one is hashed, not left out', { exclude: ['plans.name'] }, { hash: ['plans.name'] }, false],
  ['the last export was one for Excel, which no program reads', { forExcel: true }, {}, false],
])('whether a list continues from its watermark where %s', async (_, before, now, continues) => {
  const state = await temporaryState()
  const billing = clientOf(await startSandbox({ counts: { plans: 3 } }))
  const deps = { state, hashKey: 'mine', destinations: new Map(), billing }
  const plan = createPlan(before)
  const hashedWith = markOf(plan, deps.hashKey)
  await recordRead({ deps, plan, resource: 'plans', destination: 'csv', manifest: proven, hashedWith })
  const { since } = await toSince({ deps, plan: createPlan(now), lists: ['plans'], lookbackSeconds: 0 })
  expect(since.plans).toBe(continues ? Date.parse('2026-11-20T00:00:00Z') : undefined)
})

describe('so that no change falls between two incremental exports', () => {
  const at = (time: string) => Date.parse(`2026-11-20T${time}Z`)

  async function startWatermark(customers: Partial<ListManners> = {}, count = 30) {
    const state = await temporaryState()
    const billing = clientOf(await startSandbox({ counts: { customers: count }, lists: { customers } }))
    const deps = { state, hashKey: '', destinations: new Map(), billing }
    /** Publishes a proven read of what was updated up to `to`; returns the watermark. */
    type More = Partial<Read> & { since?: string; seenClaims?: ExportPlan['seenClaims'] }
    const publish = async (to: string, { since, seenClaims = {}, ...more }: More = {}) => {
      const plan = createPlan({ seenClaims, ...(since !== undefined && { since: { customers: at(since) } }) })
      const time = new Date(at(to)).toISOString()
      const manifest = { ...proven, completeThrough: time, newestUpdated: time, ...more }
      const place = { deps, plan, resource: 'customers', destination: 'csv' } as const
      const series = await recordRead({ ...place, manifest, hashedWith: undefined })
      return (await state.publications.watermark(series))?.at
    }
    const next = async (lookbackSeconds?: number) =>
      (await toSince({ deps, plan: createPlan(), lists: ['customers'], lookbackSeconds })).since.customers
    const seen = () => toSeenClaims({ deps, plan: createPlan(), lists: ['customers', 'plans'] })
    return { state, publish, next, seen, deps }
  }

  test.each([
    ['five minutes', undefined, '01:55:00'],
    ['as long as was asked for', 60, '01:59:00'],
  ])(
    'the next begins %s before the watermark: a record may be committed after its `updated`',
    async (_, lookback, time) => {
      const { publish, next } = await startWatermark()
      await publish('02:00:00')
      expect(await next(lookback)).toBe(at(time))
    },
  )

  test('the next begins at a whole millisecond, as its manifest says it', async () => {
    const { publish, next } = await startWatermark()
    await publish('02:00:00')
    expect(await next(0.0005)).toBe(at('02:00:00') - 1)
  })

  test.each<[string, Partial<Read>]>([
    ['goes by this machine’s clock', { clock: 'local' }],
    ['is not proven', { verdict: 'unproven' }],
    ['found statuses that the list hides', { hiddenFound: true }],
  ])('a read that %s moves no watermark', async (_, read) => {
    const { publish } = await startWatermark()
    expect(await publish('02:00:00', read)).toBeUndefined()
  })

  test.each<[string, Partial<Read>]>([
    ['the newest `updated` in the list', { completeThrough: '2026-11-20T04:00:00Z' }],
    ['what the read covers', { newestUpdated: '2026-11-20T04:00:00Z' }],
  ])('a watermark does not go beyond %s, whichever of two clocks is ahead', async (_, read) => {
    const { publish } = await startWatermark()
    expect(await publish('02:00:00', read)).toBe(at('02:00:00'))
  })

  test('a list that is sorted by `created` where `updated` is asked for is read in full, also before it shows', async () => {
    const { publish, deps } = await startWatermark({}, 500)
    await publish('02:00:00')
    const list = ({ ordering, ...query }: ListQuery) =>
      deps.billing.list({ ...query, ...(ordering && { ordering: ordering.replace('updated', 'created') }) })
    const billing = { ...deps.billing, list }
    const from = { plan: createPlan(), lists: ['customers'], lookbackSeconds: undefined } as const
    expect(await toSince({ ...from, deps })).toHaveProperty('since.customers')
    expect(await toSince({ ...from, deps: { ...deps, billing } })).toEqual({
      since: {},
      whole: { customers: expect.stringContaining('`updated`') },
    })
  })

  test('a list that has no watermark, or that is not sorted by `updated`, is read in full', async () => {
    const { publish, next } = await startWatermark()
    expect(await next()).toBeUndefined()
    const unsorted = await startWatermark({ orderings: [], defaultOrdering: '-created' })
    await unsorted.publish('02:00:00')
    expect(await unsorted.next()).toBeUndefined()
    await publish('02:00:00')
    expect(await next()).toBeDefined()
  })

  test('a list is read in full after our own changes that move no `updated`, until a full read has begun after them', async () => {
    const { state, publish, next, seen } = await startWatermark()
    const contacts = { workspace: 'acc_1', mode: 'live', kind: 'update-contact' } as const
    const change = { body: '{}', key: 'con_1', row: 1 }
    await state.ledger.stage({ ...contacts, run: 'import', repeats: 'always', changes: [change] })
    const { id } = (await state.ledger.row({ run: 'import', row: 1 }))!
    const patch = (state_: 'sending' | 'done', claims: number) =>
      state.ledger.move({ id, from: ['staged', 'sending'], patch: { state: state_, claims } })
    await publish('02:00:00')
    expect(await next()).toBeDefined()
    await patch('sending', 1)
    expect(await next()).toBeUndefined()
    // This read may have taken the customer before the change took effect.
    const during = await seen()
    await patch('done', 1)
    await publish('02:00:00', { seenClaims: during })
    expect(await next()).toBeUndefined()
    // The customer that was changed last is gone.
    await publish('01:30:00', { seenClaims: await seen() })
    expect(await next()).toBe(at('01:55:00'))
    await publish('03:00:00', { since: '02:00:00' })
    expect(await next()).toBeDefined()
  })

  test('parts that are published late move no watermark past missing records', async () => {
    const { publish } = await startWatermark()
    await publish('01:00:00')
    expect(await publish('03:00:00', { since: '02:00:00' })).toBe(at('01:00:00'))
    await publish('02:00:00', { since: '01:00:00' })
    expect(await publish('03:00:00', { since: '02:00:00' })).toBe(at('03:00:00'))
  })
})
