import { join } from 'node:path'
import { expect, test } from 'vitest'
import { endSending } from '../../../activities/write/steps.ts'
import { sendWithinMs } from '../../../core/billing/transport.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { takeRight } from '../../../core/changes/send/send-right.ts'
import { createAttempts } from '../../../core/runs/sending-attempts.ts'
import { cached } from '../../../core/storage/cached.ts'
import { createFolderStore } from '../../../core/storage/folder-store.ts'
import { LockLostError, SupersededError } from '../../../core/state/errors.ts'
import { addonRows, retentionRows, startEngine, startSandbox } from './engine.ts'
import { leaseOf, senderOf } from '../state/sender-of.ts'

const kind = changeKinds['create-addon']

/** As of several workers, in whose bucket nothing is yet. */
const sharedBy = ({ state, ledger, runFolder: dataDir }: Awaited<ReturnType<typeof startEngine>>) => ({
  state: { ...state, ledger: { ...ledger, isShared: true } },
  shared: cached(dataDir, createFolderStore(join(dataDir, 'bucket'))),
  dataDir,
})

test('an attempt that was superseded between two rounds does not take the right back', async () => {
  const sandbox = await startSandbox()
  const engine = await startEngine({ kind, sandbox })
  const { ledger, run } = engine
  await engine.stage(addonRows(3))
  const take = (attempt: number) => takeRight({ ledger, run, lease: leaseOf(run, attempt) })
  const first = await take(1)
  await engine.send({ sender: first, rows: [1] })
  const second = await take(2)
  await expect(engine.send({ sender: first })).rejects.toBeInstanceOf(SupersededError)
  await expect(take(1)).rejects.toBeInstanceOf(SupersededError)
  expect((await engine.rows()).map(({ state }) => state)).toEqual(['done', 'staged', 'staged'])
  expect(await engine.send({ sender: second })).toMatchObject({ ended: 'finished', done: 2 })
})

test('rows that another machine may still send are looked up two seconds later', async () => {
  const engine = await startEngine({ kind, sandbox: await startSandbox() })
  const { ledger, run } = engine
  await engine.stage(addonRows(1))
  const [row] = await engine.rows()
  await ledger.claim({ sender: await senderOf(ledger, run), id: row!.id, sends: 0, at: 1 })
  const shared = { ...ledger, isShared: true }
  await takeRight({ ledger: { ...shared, now: () => 5 }, run, lease: leaseOf(run) })
  expect(await engine.rows()).toMatchObject([{ state: 'unknown', unknownSince: 5 + sendWithinMs }])
})

test('ending the sending of a run takes the right from an attempt on another machine', async () => {
  const engine = await startEngine({ kind, sandbox: await startSandbox() })
  const { ledger, run } = engine
  await engine.stage(addonRows(2))
  const sender = await takeRight({ ledger, run, lease: leaseOf(run) })
  await engine.send({ sender, rows: [1] })
  await endSending({
    deps: sharedBy(engine),
    attempts: createAttempts(),
    run,
    lease: leaseOf(run),
  })
  await expect(engine.send({ sender })).rejects.toBeInstanceOf(SupersededError)
})

test('an attempt that slept until its run had reported and released its lease sends nothing', async () => {
  const engine = await startEngine({ kind, sandbox: await startSandbox() })
  const { ledger, run, state } = engine
  await engine.stage(addonRows(2))
  const take = (attempt: number) => takeRight({ ledger, run, lease: leaseOf(run, attempt) })
  const lease = leaseOf(run, 2)
  const deps = sharedBy(engine)
  await endSending({ deps, attempts: createAttempts(), run, lease })
  await state.leases.release(lease)
  await expect(take(1)).rejects.toBeInstanceOf(SupersededError)
  // The same run, reset or started again, may.
  expect(await engine.send({ sender: await take(3) })).toMatchObject({ ended: 'finished', done: 2 })
})

test('a run sends nothing under a lease that another run holds, and ends its own sending without it', async () => {
  const engine = await startEngine({ kind, sandbox: await startSandbox() })
  const { ledger, leases, run } = engine
  await engine.stage(addonRows(1))
  const lease = leaseOf(run)
  const other = { workflowId: 'other', runId: 'other' }
  await leases.take({ name: lease.name, owner: other, isClosed: async () => false })
  await expect(takeRight({ ledger, run, lease })).rejects.toBeInstanceOf(SupersededError)
  await endSending({ deps: sharedBy(engine), attempts: createAttempts(), run, lease })
  expect(await leases.holder(lease)).toEqual(other)
})

const retentions = changeKinds['create-retention']
const posts = (sandbox: Awaited<ReturnType<typeof startSandbox>>) =>
  sandbox.control.requests().filter(({ method }) => method === 'POST').length

test('a sender whose folder is no longer its own sends nothing more, and the run fails with the reason', async () => {
  const sandbox = await startSandbox()
  let held = true
  const engine = await startEngine({
    kind: retentions,
    sandbox,
    isHeld: () => held,
    limits: { concurrency: 1 },
  })
  await engine.stage(retentionRows(4))
  await engine.send({ rows: [1] })
  held = false
  await expect(engine.send()).rejects.toThrow(LockLostError)
  expect(posts(sandbox)).toBe(1)
  expect((await engine.rows()).map(({ state }) => state)).toEqual(['done', 'staged', 'staged', 'staged'])
})

test('a sender that lost its folder while it wrote the claim does not send it; the next one looks up its outcome', async () => {
  const sandbox = await startSandbox()
  let checks = 0
  const engine = await startEngine({
    kind: retentions,
    sandbox,
    isHeld: () => ++checks < 2,
    limits: { concurrency: 1 },
  })
  await engine.stage(retentionRows(1))
  await expect(engine.send()).rejects.toThrow('worker.lock was removed or replaced')
  expect(posts(sandbox)).toBe(0)
  expect(await engine.rows()).toMatchObject([{ state: 'sending', sends: 1 }])
})
