import { rename, rm } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Billing, ListQuery } from '../../../core/billing/client.ts'
import { ServiceFault } from '../../../core/billing/errors.ts'
import { readParts } from '../../../core/destinations/parts.ts'
import { type Checkpoint, latestCheckpoint } from '../../../core/exports/parts/checkpoint.ts'
import { fetchParts } from '../../../core/exports/parts/chunks.ts'
import { toReadOptions } from '../../../core/exports/parts/read-plan.ts'
import type { Source } from '../../../core/exports/parts/read-segment.ts'
import { type RangeState, startState } from '../../../core/reading/range-state.ts'
import { type IdState, readById } from '../../../core/reading/read-by-id.ts'
import { readList } from '../../../core/reading/read-list.ts'
import { createPlan } from '../../system/export/plan.ts'
import { clientOf, startSandbox } from '../changes/engine.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'
import { newMachine, newStore, readDeps, readOn } from './machine.ts'

const { now } = readDeps.state

interface Documents {
  ids: string[]
  from?: Checkpoint | undefined
  get: (id: string) => Promise<{ record: Record<string, unknown> }>
}

/** Reads documents by id, with one request at a time. */
const documents = ({ ids, from, get }: Documents): Source =>
  readById({
    resource: 'creditnotes',
    ids,
    fetchDocument: async (id) => ({ ...(await get(id)), ageMs: undefined }),
    testMode: false,
    concurrency: 1,
    now,
    state: from?.read as IdState | undefined,
  })

/** Reads 50 documents of 1 MB, with a store whose `keep` is `keep`. Calls `onAsked` for each. */
async function openLongRead(
  keep: (work: () => Promise<void>) => Promise<void>,
  onAsked: () => void = () => undefined,
) {
  const machine = await newMachine(await newStore(), 'creditnotes')
  const shared = { ...machine.shared, keep: (file: string) => keep(() => machine.shared.keep(file)) }
  const ids = Array.from({ length: 50 }, (_, at) => `${at}`)
  const asked: string[] = []
  const get = async (id: string) => {
    asked.push(id)
    onAsked()
    return { record: { id, note: 'x'.repeat(1 << 20) } }
  }
  const open = () => documents({ ids, get })
  const read = (ms: number) => readOn({ ...machine, shared }, { resource: 'creditnotes', open, ms })
  return { read, asked, latest: () => latestCheckpoint(machine) }
}

test('a read continues while the store takes what was read, but no further than the next checkpoint', async () => {
  const free = Promise.withResolvers<void>()
  const { read, asked, latest } = await openLongRead(async (work) => {
    await free.promise
    await work()
  })
  const end = read(60_000)
  await vi.waitUntil(() => asked.length > 30, { timeout: 20_000 })
  // Long enough to ask for all the others.
  for (let turn = 0; turn < 1_000; turn++) await nextTurn()
  expect(asked.length).toBeLessThan(40)
  expect(await latest()).toBeUndefined()
  free.resolve()
  expect((await end).read.counts.records).toBe(50)
  expect((await latest())?.parts.length).toBeGreaterThan(2)
})

test('a store that needs longer than the interval between checkpoints does not make each step a checkpoint', async () => {
  let now = 0
  vi.spyOn(performance, 'now').mockImplementation(() => now)
  const saves: PromiseWithResolvers<void>[] = []
  let isSlow = true
  const release = () => {
    isSlow = false
    for (const save of saves) save.resolve()
  }
  const { read, asked } = await openLongRead(
    async (work) => {
      const save = Promise.withResolvers<void>()
      saves.push(save)
      if (isSlow) await save.promise
      await work()
    },
    () => {
      now += 1_000
    },
  )
  onTestFinished(() => {
    release()
    vi.restoreAllMocks()
  })
  const end = read(600_000)
  for (let save = 1; save <= 3; save++) {
    // The read continues for five documents of a second each, then waits for the store.
    await vi.waitUntil(() => saves.length === save && asked.length >= 5 * (save + 1), { timeout: 10_000 })
    now += 20_000
    saves.at(-1)!.resolve()
  }
  release()
  expect((await end).read.counts.records).toBe(50)
  expect(saves.length).toBeLessThanOrEqual(11)
})

test('a store that fails in the background ends the attempt, and the next one continues from its parts', async () => {
  let failures = 0
  const { read, latest } = await openLongRead(async (work) => {
    if (++failures === 1) throw new Error('away')
    await work()
  })
  await expect(read(60_000)).rejects.toThrow('away')
  expect((await latest())?.read.counts.records).toBeGreaterThan(16)
})

test('a read whose folder is removed while the store takes a chunk continues page by page from the store', async () => {
  const store = await newStore()
  const machine = await newMachine(store, 'plans')
  const { dataDir, folder } = machine
  const records = Array.from({ length: 150 }, (_, at) => ({
    id: `pla_${at}`,
    name: 'x'.repeat(200_000),
    created: new Date(Date.parse('2026-01-01T00:00:00Z') + at * 1_000).toISOString(),
  }))
  const fallsBack = Promise.withResolvers<void>()
  const removed = Promise.withResolvers<void>()
  const taken = join(await temporaryFolder(), 'taken')
  let kept = 0
  const keep = async (file: string) => {
    kept += 1
    // The first chunk is two files: the records, and the certificate.
    if (kept > 2) return await machine.shared.keep(file)
    // What is open is read to its end, although its folder is gone.
    if (kept === 1) {
      await rename(folder, taken)
      removed.resolve()
      await fallsBack.promise
      await wait(50)
    }
    await store.put(relative(dataDir, file), join(taken, basename(file)))
  }
  const byId = records.toSorted((a, b) => (a.id < b.id ? -1 : 1))
  const list = async ({ ordering, page, pageSize, filters }: ListQuery) => {
    const isOrdered = ordering === '-created'
    const all = isOrdered ? records.toReversed() : byId
    // Before, each status is sampled.
    const isOfAll = filters?.['status'] === undefined
    if (isOfAll && !isOrdered) {
      await removed.promise
      fallsBack.resolve()
    }
    const shown = all.slice((page - 1) * pageSize, page * pageSize)
    const next = page * pageSize < all.length ? `?page=${page + 1}` : null
    return { records: shown, count: all.length, next, servedAt: Date.now() }
  }
  const shared = { ...machine.shared, keep }
  const plan = createPlan({ run: 'r', resources: ['plans'] })
  const billing = { list } as unknown as Billing
  const cancelled = new AbortController().signal
  const deps = { ...machine, ...readDeps, shared, state: { now: Date.now } }
  const options = toReadOptions({ deps, plan, resource: 'plans', billing, cancelled })
  const open: Parameters<typeof readOn>[1]['open'] = (written) => readList({ ...options, ...written })
  const end = await readOn({ ...machine, shared }, { resource: 'plans', deps, open })
  expect(end.outcome).toMatchObject({ verdict: 'unproven', records: 150 })
  await rm(folder, { recursive: true })
  await fetchParts({ ...machine, parts: end.parts })
  const text = Buffer.concat(await Array.fromAsync(readParts(end.parts))).toString('utf8')
  expect(new Set(text.match(/pla_\d+/g)).size).toBe(150)
})

test('the totals of a read that fails and resumes are those of all its rows, each counted once', async () => {
  const machine = await newMachine(undefined, 'creditnotes')
  const ids = Array.from({ length: 7 }, (_, at) => `${at}`)
  const read = (from: Checkpoint | undefined, most: number) => {
    const get = (id: string) =>
      Number(id) < most
        ? Promise.resolve({ record: { id, total: '1.10' } })
        : Promise.reject(new Error('gone'))
    return readOn(machine, { resource: 'creditnotes', from, open: () => documents({ ids, from, get }) })
  }
  for (const most of [3, 5]) await expect(read(await latestCheckpoint(machine), most)).rejects.toThrow('gone')
  const from = await latestCheckpoint(machine)
  expect(from?.totals.columns['creditnotes.total']).toEqual({ sum: '5.50', empty: 0 })
  const { totals } = await read(from, 7)
  expect(totals.columns['creditnotes.total']).toEqual({ sum: '7.70', empty: 0 })
})

test('a cap on requests counts those of attempts that failed, and the next attempt sends what is left', async () => {
  const machine = await newMachine()
  const sandbox = await startSandbox({ counts: { customers: 60 } })
  const billing = clientOf(sandbox)
  const plan = createPlan({ run: 'r', resources: ['customers'], maxPages: 10 })
  const cancelled = new AbortController().signal
  const deps = { ...machine, ...readDeps }
  const options = toReadOptions({ deps, plan, resource: 'customers', billing, cancelled })
  const sent = () => sandbox.control.requests().length
  sandbox.control.setFaults({ faults: [{ kind: 'error', status: 503 }] })
  const before = sent()
  const read = async () => {
    const from = await latestCheckpoint(machine)
    const state = (from?.read as RangeState | undefined) ?? startState(options)
    const open: Parameters<typeof readOn>[1]['open'] = (written) =>
      readList({ ...options, ...written, state })
    return await readOn(machine, { resource: 'customers', deps, plan, from, open })
  }
  await expect(read()).rejects.toThrow('503')
  expect(sent() - before).toBe(8)
  expect((await read()).outcome).toMatchObject({ verdict: 'unproven', capped: true, requests: 10 })
  expect(sent() - before).toBe(10)
})

test('a read that is cut short and fails when its time is up ends with the error', async () => {
  let now = 0
  vi.spyOn(performance, 'now').mockImplementation(() => now)
  onTestFinished(() => void vi.restoreAllMocks())
  const fetchPage = async () => {
    now += 300_000
    throw new ServiceFault({ method: 'GET', path: '/customers/', status: 503 })
  }
  const resource = 'customers'
  const plan = createPlan({ run: 'r', resources: [resource], maxPages: 100 })
  const machine = await newMachine()
  const cancelled = new AbortController().signal
  const deps = { ...machine, ...readDeps }
  const options = toReadOptions({ deps, plan, resource, billing: {} as Billing, cancelled })
  const open: Parameters<typeof readOn>[1]['open'] = (written) =>
    readList({ ...options, ...written, fetchPage })
  await expect(readOn(machine, { resource, plan, open })).rejects.toThrow('503')
})
