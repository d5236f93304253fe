import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { changeKinds } from '../../../core/changes/kinds.ts'
import type { Fault } from '../../../sandbox/faults.ts'
import { connectTemporal, createWorld, startTestWorker } from '../export/world.ts'
import { addonsCsv, putFile, quick, retentionsCsv, sheetOf, startImport, timesOf } from './world.ts'

const seed = 20_261_121
const slow = { timeout: 90_000 }
const counts = { customers: 1, subscriptions: 0, plans: 0, retentions: 40, orders: 0 }

/** Everything that can go wrong with a write, at once, beside another client that makes retentions of its own. */
const faultsOf = (on: string): Fault[] => [
  { kind: 'latency', ms: 2, jitterMs: 10 },
  { kind: 'reset', effect: 'none', rate: 0.04, on },
  { kind: 'reset', effect: 'done', rate: 0.05, on },
  { kind: 'error', effect: 'none', rate: 0.01, on },
  { kind: 'error', effect: 'done', rate: 0.04, on },
  { kind: 'error', status: 502, html: true, effect: 'done', rate: 0.02, on },
  { kind: 'cutBody', rate: 0.02, on },
  { kind: 'lateEffect', seconds: 1.4, rate: 0.03, on },
  { kind: 'throttle', perSecond: 120, burst: 40, retryAfter: 'none', on },
  { kind: 'error', rate: 0.02, on: 'GET /retentions/' },
]
const otherClient: Fault = {
  kind: 'otherClient',
  rate: 0.1,
  fields: { supplier: 'sup_other', document: 99, number: 1 },
  on: 'POST /retentions/',
}

/** Looks 0.8 and 2.4 s after the request: what takes effect 1.4 s late is seen by the second. */
const settling = { ...quick, verifyAfter: 0.8 } as const

async function importUnderFire({
  kind,
  rows,
  faults,
}: {
  kind: 'retentions' | 'addons'
  rows: string
  faults: Fault[]
}) {
  const world = await createWorld({ seed, counts, faults })
  await startTestWorker(world)
  const file = await putFile(world, rows)
  const client = await connectTemporal()
  const run = await startImport({ client, world, input: { kind, file, ...settling } })
  return { world, run, result: await run.result() }
}

describe(`an import under every fault at once (seed ${seed})`, () => {
  test('makes each of 300 retentions exactly once, and proves it', slow, async () => {
    const faults = [...faultsOf('POST /retentions/'), otherClient]
    const { world, run, result } = await importUnderFire({
      kind: 'retentions',
      rows: retentionsCsv(300),
      faults,
    })
    expect(timesOf(world, 'retentions', 300).filter((times) => times !== 1)).toEqual([])
    expect(result).toMatchObject({
      verdict: 'proven',
      reasons: [],
      counts: { done: 300 },
      audit: { found: 300 },
    })
    expect(result.outcomes['found']).toBeGreaterThan(10)
    // What the service itself noted: one creation for each row, some of them late, beside the other client's.
    const by = Map.groupBy(world.sandbox.control.effects(), (effect) => effect.by)
    const ours = (by.get('request')?.length ?? 0) + (by.get('late effect')?.length ?? 0)
    expect(ours).toBe(300)
    expect(by.get('late effect')?.length).toBeGreaterThan(1)
    expect(by.get('other client')?.length).toBeGreaterThan(10)
    const { events } = await run.fetchHistory()
    expect(events?.length).toBeLessThan(100)
    const ids = new Set((await sheetOf(result, 'results')).map((row) => row['_id']))
    expect(ids.size).toBe(300)
  })

  test('makes no addon twice, and names each whose fate is not known', slow, async () => {
    const faults = faultsOf('POST /addons/')
    const { world, result } = await importUnderFire({ kind: 'addons', rows: addonsCsv(200), faults })
    const times = timesOf(world, 'addons', 200)
    expect(times.filter((count) => count > 1)).toEqual([])
    const rows = await sheetOf(result, 'results')
    const lost = rows.filter((row, index) => row['_status'] === 'done' && times[index] !== 1)
    expect(lost).toEqual([])
    const parked = await sheetOf(result, 'parked')
    expect(parked.length).toBe(result.counts.parked)
    expect(result.counts.parked).toBeGreaterThan(5)
    expect(result.counts.done + result.counts.parked).toBe(200)
    expect(result.verdict).toBe('unproven')
    expect(
      parked.every((row) => row['_look']?.startsWith('addon: name Addon ') && row['_sent_at'] !== ''),
    ).toBe(true)
  })

  test('would be caught making doubles if it repeated blindly', slow, async () => {
    onTestFinished(() => void vi.restoreAllMocks())
    vi.spyOn(changeKinds['create-retention'], 'whenUnknown').mockReturnValue('sendAgain')
    const faults = faultsOf('POST /retentions/')
    const { world, result } = await importUnderFire({ kind: 'retentions', rows: retentionsCsv(150), faults })
    expect(timesOf(world, 'retentions', 150).filter((times) => times > 1).length).toBeGreaterThan(5)
    expect(result).toMatchObject({ verdict: 'unproven' })
    expect(result.audit?.findings.double).toBeGreaterThan(5)
  })
})
