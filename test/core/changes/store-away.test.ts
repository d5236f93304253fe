import { expect, test, vi } from 'vitest'
import { SentTooLate } from '../../../core/billing/errors.ts'
import type { ChangeKind } from '../../../core/changes/change-kind.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { whenStoreIsBack } from '../../../core/state/store.ts'
import { KeyHeldError, StateBusyError, SupersededError } from '../../../core/state/errors.ts'
import { senderOf } from '../state/sender-of.ts'
import type { ChangeToStage } from '../../../core/changes/staged-changes.ts'
import { addonRows, refusedFrom, retentionRows, startRun } from './engine.ts'

const { 'create-addon': addon, 'create-retention': retention } = changeKinds
const away = () => new StateBusyError({ place: 'state.db' })

/** An engine whose ledger is away for the first writes of an outcome; `lost` loses only the confirmation of one. */
async function startAway(
  kind: ChangeKind,
  rows: ChangeToStage[],
  { times = 3, lost }: { times?: number; lost?: () => Promise<void> } = {},
) {
  const { engine } = await startRun(kind, rows)
  const { ledger } = engine
  const move = ledger.move.bind(ledger)
  let failures = 0
  ledger.move = async (options) => {
    if (failures === times) return await move(options)
    failures += 1
    if (lost !== undefined) {
      await move(options)
      await lost()
    }
    throw away()
  }
  return { ...engine, failures: () => failures }
}

test('an answer in hand waits until the state store is back, and the run is told each time that it was away', async () => {
  const engine = await startAway(addon, addonRows(1))
  const onAway = vi.fn<() => void>()
  expect(await engine.send({ onAway })).toMatchObject({ ended: 'finished', done: 1 })
  expect(onAway).toHaveBeenCalledTimes(3)
  expect(await engine.rows()).toMatchObject([{ state: 'done', outcome: 'created', sends: 1 }])
  expect(engine.failures()).toBe(3)
})

/** An engine whose ledger commits the first claim and loses its confirmation; `meanwhile` comes in between. */
async function startLosingClaim(meanwhile: (claimed: number) => Promise<void> = async () => {}) {
  const { sandbox, engine } = await startRun(addon, addonRows(1))
  const { ledger } = engine
  const claim = ledger.claim.bind(ledger)
  const lose = async (options: Parameters<typeof claim>[0]) => {
    ledger.claim = claim
    await claim(options)
    await meanwhile(options.id)
    throw away()
  }
  ledger.claim = lose
  return { ...engine, sandbox }
}

test('a claim whose confirmation by the state store was lost is put back as not sent, and its row is sent once', async () => {
  const engine = await startLosingClaim()
  await expect(engine.send()).rejects.toBeInstanceOf(StateBusyError)
  expect(await engine.rows()).toMatchObject([{ state: 'staged', outcome: 'neverSent', claims: 1, sends: 0 }])
  expect(await engine.send()).toMatchObject({ ended: 'finished', done: 1 })
  expect(await engine.rows()).toMatchObject([{ state: 'done', outcome: 'created', claims: 2, sends: 1 }])
  expect([...engine.sandbox.control.records({ resource: 'addons' })]).toHaveLength(1)
})

test('a claim whose confirmation was lost is not put back by a sender that another one has superseded', async () => {
  const engine = await startLosingClaim(() => senderOf(ledger, run).then(() => undefined))
  const { ledger, run } = engine
  await expect(engine.send()).rejects.toBeInstanceOf(SupersededError)
  expect(await engine.rows()).toMatchObject([{ state: 'unknown', claims: 1 }])
})

test('a refusal in hand waits until the state store is back', async () => {
  const engine = await startAway(retention, refusedFrom(1, retentionRows(1)))
  expect(await engine.send()).toMatchObject({ ended: 'finished', failed: 1 })
  expect(await engine.rows()).toMatchObject([{ state: 'rejected', outcome: 'refused' }])
})

test('an answer whose confirmation by the state store was lost is written once and counts once', async () => {
  const engine = await startAway(addon, addonRows(1), { times: 1, lost: async () => {} })
  expect(await engine.send()).toMatchObject({ ended: 'finished', done: 1 })
  expect(await engine.rows()).toMatchObject([{ state: 'done', outcome: 'created', sends: 1 }])
})

test('a request that did not leave is not put back a second time while another sender has claimed its row', async () => {
  let reached = 0
  const late: ChangeKind = {
    ...addon,
    send: async (request) => {
      await request.options.beforeSend?.()
      reached += 1
      throw new SentTooLate({ method: 'POST', path: '/addons/', ms: 2_500 })
    },
  }
  let claim = async () => {}
  const engine = await startAway(late, addonRows(1), { times: 1, lost: () => claim() })
  const { ledger, run } = engine
  claim = async () => {
    const sender = await senderOf(ledger, run)
    const [row] = await engine.rows()
    await ledger.claim({ sender, id: row?.id ?? 0, sends: 0, at: Date.now() })
  }
  await engine.send().catch(() => undefined)
  expect(reached).toBe(1)
  expect(await engine.rows()).toMatchObject([{ state: 'sending', claims: 2, sends: 1 }])
})

test('the wait for the state store ends with its error after its time, and at once with any other error', async () => {
  let tries = 0
  const failing = (error: Error) => async () => {
    tries += 1
    throw error
  }
  await expect(whenStoreIsBack(failing(away()), { forMs: 150 })).rejects.toBeInstanceOf(StateBusyError)
  expect(tries).toBeGreaterThan(1)
  tries = 0
  const stop = AbortSignal.timeout(50)
  await expect(whenStoreIsBack(failing(away()), { signal: stop })).rejects.toBeInstanceOf(StateBusyError)
  tries = 0
  const held = new KeyHeldError({ cause: undefined })
  await expect(whenStoreIsBack(failing(held))).rejects.toBe(held)
  expect(tries).toBe(1)
})

test('a round that fails while requests are in flight ends after their answers are written', async () => {
  const { engine } = await startRun(addon, addonRows(2))
  const { ledger } = engine
  const due = ledger.due.bind(ledger)
  let reads = 0
  ledger.due = async (options) => {
    if (reads === 1) throw away()
    reads += 1
    return await due(options)
  }
  await expect(engine.send()).rejects.toBeInstanceOf(StateBusyError)
  expect(await engine.rows()).toMatchObject([{ state: 'done' }, { state: 'done' }])
})
