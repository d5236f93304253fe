import { expect, test } from 'vitest'
import { forgiveAttempts } from '../../../core/changes/reconcile/refund-attempts.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { toCandidate } from '../../../core/recoveries/candidates/candidate.ts'
import { reasonNames } from '../../../core/recoveries/reasons.ts'
import type { RecoveryPlan } from '../../../core/recoveries/plan.ts'
import { selectCandidates } from '../../../core/recoveries/candidates/select.ts'
import { attempts, startEngine, startSandbox } from './engine.ts'

const resume = 'POST /subscriptions/{id}/resume/'

/** Twenty of the gateway that last, then thirty of the biller: the first two last, the others fall back. */
async function afterAnIncident(most: number) {
  const sandbox = await startSandbox({
    counts: { subscriptions: 50, customers: 10, plans: 3 },
    needsAttention: 1,
    faults: [{ kind: 'fallBack', on: resume, from: 23 }],
  })
  const engine = await startEngine({
    kind: changeKinds['resume-subscription'],
    sandbox,
    limits: { inFlight: 1 },
  })
  const records = [...sandbox.control.records({ resource: 'subscriptions' })].map(
    (text) => JSON.parse(text) as { id: string; customer: string },
  )
  const lane = (row: number) => (row <= 20 ? 'gateway_issue' : 'biller_issue')
  await engine.stage(
    records.map(({ id, customer }, at) => ({ row: at + 1, body: { id, customer }, lane: lane(at + 1) })),
  )
  await engine.send()
  const allowed = { ...attempts, most, waitsMs: [60_000] }
  await expect
    .poll(async () => (await engine.settle({ attempts: allowed })).unknown, { timeout: 20_000 })
    .toBe(0)
  const forgive = (before: object = {}) =>
    forgiveAttempts({
      ...engine,
      before: before as Parameters<typeof forgiveAttempts>[0]['before'],
      after: { biller_issue: { clearedAt: 0, openedAt: 1, trials: 0 } },
    })
  const used = async () =>
    (await engine.rows()).filter(({ attempts }) => attempts > 0).map(({ row, state }) => `${row} ${state}`)
  return { engine, forgive, used }
}

test('what fell back while a breaker opened has its attempt back, however many they were', async () => {
  const { engine, forgive, used } = await afterAnIncident(3)
  expect(await used()).toHaveLength(28)
  await forgive({ biller_issue: { clearedAt: 0, openedAt: 1, trials: 0 } })
  expect(await used(), 'it was open before').toHaveLength(28)
  await forgive()
  expect(await used()).toEqual([])
  expect((await engine.rows()).map(({ state }) => state).filter((state) => state === 'staged')).toHaveLength(
    28,
  )
})

test('what had used up its last attempt by that is tried again, under its own key', async () => {
  const { engine, forgive, used } = await afterAnIncident(1)
  expect((await used())[0]).toBe('23 parked')
  await forgive()
  expect((await engine.rows())[22]).toMatchObject({ state: 'staged', attempts: 0, holdsKey: true })
})

test('what earlier runs used up stays used up where a canary falls back before the breaker opens', async () => {
  const sandbox = await startSandbox({
    counts: { subscriptions: 1, customers: 1, plans: 1 },
    needsAttention: 1,
    faults: [{ kind: 'fallBack', on: resume }],
  })
  const engine = await startEngine({ kind: changeKinds['resume-subscription'], sandbox })
  const records = [...sandbox.control.records({ resource: 'subscriptions' })]
  const candidates = records.flatMap((text) => toCandidate(JSON.parse(text) as Record<string, unknown>) ?? [])
  const past = { attempts: 2, sends: 2, body: '{}', lastSentAt: Date.now(), run: 'earlier', answer: null }
  const { rows } = selectCandidates({
    plan: {
      reasons: [...reasonNames],
      named: true,
      attempts: 3,
      coolDownMs: 0,
      startedAt: new Date().toISOString(),
      limits: {},
    } as unknown as RecoveryPlan,
    candidates,
    history: new Map(candidates.map(({ id }) => [id, past])),
  })
  await engine.stage(rows.map(({ change }) => change))
  await engine.send()
  const inCanary = { ...attempts, waitsMs: [60_000], count: false }
  await expect
    .poll(async () => (await engine.settle({ attempts: inCanary })).unknown, { timeout: 20_000 })
    .toBe(0)
  expect((await engine.rows())[0]).toMatchObject({ sends: 1, outcome: 'fellBack', attempts: 2 })
  const opened = { clearedAt: 0, openedAt: 1, trials: 0 }
  const after = Object.fromEntries(rows.map(({ candidate }) => [candidate.reason, opened]))
  await forgiveAttempts({ ...engine, before: {}, after })
  expect((await engine.rows())[0]).toMatchObject({ attempts: 2 })
})
