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
import { addonRows, claimFirst, requestsOf, retentionRows, type startEngine, startRun } from './engine.ts'
import { leaseOf } from '../state/sender-of.ts'

const kind = changeKinds['create-addon']

/** As of several workers, in whose bucket nothing is yet. */
const sharedBy = ({ state, ledger, runFolder: dataDir }: Awaited<ReturnType<typeof startEngine>>) => ({
  state: { ...state, ledger: { ...ledger, isShared: true } },
  shared: cached(dataDir, createFolderStore(join(dataDir, 'bucket'))),
  dataDir,
})

test('an attempt that was superseded between two rounds does not take the right back', async () => {
  const { engine } = await startRun(kind, addonRows(3))
  const { ledger, run } = engine
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
  const { engine } = await startRun(kind, addonRows(1))
  const { ledger, run } = engine
  await claimFirst(engine)
  const shared = { ...ledger, isShared: true }
  await takeRight({ ledger: { ...shared, now: () => 5 }, run, lease: leaseOf(run) })
  expect(await engine.rows()).toMatchObject([{ state: 'unknown', unknownSince: 5 + sendWithinMs }])
})

test('ending the sending of a run takes the right from an attempt on another machine', async () => {
  const { engine } = await startRun(kind, addonRows(2))
  const { ledger, run } = engine
  const sender = await takeRight({ ledger, run, lease: leaseOf(run) })
  await engine.send({ sender, rows: [1] })
  await endSending({
    deps: sharedBy(engine),
    attempts: createAttempts(),
    run,
    lease: { ...leaseOf(run), isOwn: true },
  })
  await expect(engine.send({ sender })).rejects.toBeInstanceOf(SupersededError)
})

test('an attempt that slept until its run had reported and released its lease sends nothing', async () => {
  const { engine } = await startRun(kind, addonRows(2))
  const { ledger, run, state } = engine
  const take = (attempt: number) => takeRight({ ledger, run, lease: leaseOf(run, attempt) })
  const lease = { ...leaseOf(run, 2), isOwn: true }
  const deps = sharedBy(engine)
  await endSending({ deps, attempts: createAttempts(), run, lease })
  await state.leases.release(lease)
  await expect(take(1)).rejects.toBeInstanceOf(SupersededError)
  // The same run, reset or started again, may.
  expect(await engine.send({ sender: await take(3) })).toMatchObject({ ended: 'finished', done: 2 })
})

test('a run sends nothing under a lease that another run holds, and ends its own sending without it', async () => {
  const { engine } = await startRun(kind, addonRows(1))
  const { ledger, leases, run } = engine
  const lease = leaseOf(run)
  const other = { workflowId: 'other', runId: 'other' }
  await leases.take({ name: lease.name, owner: other, isClosed: async () => false })
  await expect(takeRight({ ledger, run, lease })).rejects.toBeInstanceOf(SupersededError)
  const end = (isOwn: boolean) =>
    endSending({ deps: sharedBy(engine), attempts: createAttempts(), run, lease: { ...lease, isOwn } })
  expect(await end(false)).toBeUndefined()
  expect(await leases.lastHolder(lease)).toEqual({ ...other, isReleased: false })
  await leases.release({ name: lease.name, owner: other })
  expect(await end(false)).toBeUndefined()
  // The lease of an import is that of its run: a later execution of it sends the rows that remain.
  await expect(end(true)).rejects.toBeInstanceOf(SupersededError)
})

const retentions = changeKinds['create-retention']
const limits = { concurrency: 1 }

test('a sender whose folder is no longer its own sends nothing more, and the run fails with the reason', async () => {
  let held = true
  const { sandbox, engine } = await startRun(retentions, retentionRows(4), { isHeld: () => held, limits })
  await engine.send({ rows: [1] })
  held = false
  await expect(engine.send()).rejects.toThrow(LockLostError)
  expect(requestsOf(sandbox, 'POST')).toHaveLength(1)
  expect((await engine.rows()).map(({ state }) => state)).toEqual(['done', 'staged', 'staged', 'staged'])
})

test('a sender that lost its folder while it wrote the claim does not send it; the next one looks up its outcome', async () => {
  let checks = 0
  const isHeld = () => ++checks < 2
  const { sandbox, engine } = await startRun(retentions, retentionRows(1), { isHeld, limits })
  await expect(engine.send()).rejects.toThrow('worker.lock was removed or replaced')
  expect(requestsOf(sandbox, 'POST')).toEqual([])
  expect(await engine.rows()).toMatchObject([{ state: 'sending', sends: 1 }])
})
