import { copyFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import {
  type Checkpoint,
  latestCheckpoint,
  loadCheckpoint,
  nameAttempt,
  nameOf,
  saveCheckpoint,
} from '../../../core/exports/parts/checkpoint.ts'
import { fetchParts, openChunks } from '../../../core/exports/parts/chunks.ts'
import {
  findReadPlan,
  knownReadPlan,
  type ReadDeps,
  toReadOptions,
} from '../../../core/exports/parts/read-plan.ts'
import { readParts } from '../../../core/destinations/parts.ts'
import { loadPlan, savePlan } from '../../../core/exports/plan.ts'
import { cached } from '../../../core/storage/cached.ts'
import { createFolderStore } from '../../../core/storage/folder-store.ts'
import { createPlan } from '../../system/export/plan.ts'
import { checkpointOf, type Machine, newMachine, newStore } from './machine.ts'
import { planCustomers } from './plan-customers.ts'

/** One attempt: a checkpoint after each of these rows. */
async function readRows({ shared, folder }: Machine, name: string, rows: string[], from?: Checkpoint) {
  const chunks = openChunks({ folder, name })
  onTestFinished(() => chunks.abandon())
  let parts = from?.parts ?? []
  let checkpoint: Checkpoint | undefined
  for (const [index, row] of rows.entries()) {
    await chunks.append({ table: 'customers', text: `${row}\n`, count: 1 })
    const closed = await chunks.close()
    for (const { path } of closed) await shared.keep(path)
    parts = [...parts, ...closed]
    checkpoint = checkpointOf({ name: `${name}.0000${index + 1}`, parts })
    await saveCheckpoint({ shared, folder, checkpoint, from })
  }
  return checkpoint
}

async function rowsOf(machine: Machine, { parts }: Checkpoint) {
  await fetchParts({ ...machine, parts })
  const chunks = await Array.fromAsync(readParts(parts))
  return Buffer.concat(chunks).toString('utf8').trim().split('\n')
}

test('a read resumes on another machine from the last kept checkpoint, and its rows are in order', async () => {
  const store = await newStore()
  const first = await newMachine(store)
  await readRows(first, '00001-aaaaaaaa', ['1', '2'])
  await rm(first.dataDir, { recursive: true })
  const second = await newMachine(store)
  const from = await latestCheckpoint(second)
  expect(from?.name).toBe('00001-aaaaaaaa.00002')
  await readRows(second, '00002-bbbbbbbb', ['3'], from)
  const third = await newMachine(store)
  const last = await latestCheckpoint(third)
  expect(await rowsOf(third, last!)).toEqual(['1', '2', '3'])
  // The note of an attempt does not repeat what it resumed from.
  const note = await store.read('parts/r/customers/00002-bbbbbbbb.00001.checkpoint.json')
  expect(JSON.parse(note!.text)).toMatchObject({ from: '00001-aaaaaaaa.00002', parts: [{ rows: 1 }] })
})

test('a worker that was given up and reads on changes nothing of what another one has resumed', async () => {
  const store = await newStore()
  const frozen = await newMachine(store)
  const from = await readRows(frozen, '00001-aaaaaaaa', ['1'])
  const other = await newMachine(store)
  const accepted = await readRows(other, '00002-bbbbbbbb', ['2'], await latestCheckpoint(other))
  await readRows(frozen, '00002-cccccccc', ['x', 'y'], from)
  const publisher = await newMachine(store)
  const checkpoint = await loadCheckpoint({ ...publisher, name: accepted!.name })
  expect(await rowsOf(publisher, checkpoint)).toEqual(['1', '2'])
})

test('the end of a read stays its latest checkpoint, whatever a worker that was given up saves later', async () => {
  const store = await newStore()
  const reader = await newMachine(store)
  const save = async (attempt: string, { isLast = false, saves = 1 } = {}) => {
    const checkpoint = checkpointOf({ name: nameOf({ attempt, saves, isLast }) })
    await saveCheckpoint({ ...reader, checkpoint })
    return checkpoint.name
  }
  await save('00001-aaaaaaaa')
  const end = await save('00001-aaaaaaaa', { isLast: true })
  expect((await latestCheckpoint(reader))?.name).toBe(end)
  await save('00001-ffffffff')
  await save('00002-bbbbbbbb')
  const other = await newMachine(store)
  expect((await latestCheckpoint(other))?.name).toBe(end)
  expect((await loadCheckpoint({ ...other, name: end })).name).toBe(end)
})

test('what a worker alone left under the name of a run counts for nothing where several workers read it', async () => {
  const store = await newStore()
  const first = await newMachine(store)
  const { dataDir, folder } = first
  const alone = cached(dataDir)
  const plan = createPlan({ run: 'r' })
  await savePlan({ dataDir, shared: alone, plan: { ...plan, startedAt: 'before' } })
  await planCustomers({ deps: { dataDir, shared: alone, state: { now: () => 1 } }, plan })

  const find = (deps: Machine) =>
    findReadPlan({ deps: { ...deps, hashKey: '' }, plan, resource: 'customers' })
  expect(await loadPlan({ ...first, run: 'r' })).toBeUndefined()
  expect(await find(first)).toBeUndefined()
  const other = await newMachine(store)
  await savePlan({ ...other, plan })
  expect(await loadPlan({ ...first, run: 'r' })).toEqual(plan)
  const planned = await planCustomers({ deps: other, plan })
  expect(await find(first)).toEqual(planned)
  expect((await knownReadPlan(other)).tables.length).toBeGreaterThan(0)
  expect(await knownReadPlan({ shared: alone, folder })).not.toEqual(planned)
})

test('a worker with other columns or another hash key leaves a read to one like the first', async () => {
  const store = await newStore()
  const plan = createPlan({ hash: ['customers.tax_id'] })
  const open = async (hashKey: string) =>
    planCustomers({ deps: { ...(await newMachine(store)), hashKey }, plan })
  const [one, two] = await Promise.all([open('key'), open('key')])
  expect(one).toEqual(two)
  // This is how a range of a list begins: to say that the plan is gone would end the readers of all its ranges.
  const find = async (hashKey: string) =>
    findReadPlan({ deps: { ...(await newMachine(store)), hashKey }, plan, resource: 'customers' })
  expect(await find('key')).toEqual(one)
  for (const begin of [open, find])
    for (const other of ['another', ''])
      await expect(begin(other)).rejects.toMatchObject({ name: 'OtherReadError', retryable: true })
})

test('parts that do not fit are not begun: they would fill the disk for all other runs of the machine', async () => {
  const store = await newStore()
  const { dataDir, shared, folder } = await newMachine(store)
  const part = { table: 'customers', bytes: 6, rows: 1, longest: 6, sha256: '' }
  await store.create('parts/r/customers/a.part', 'abcdef')
  const parts = [
    { ...part, path: join(folder, 'a.part') },
    { ...part, path: join(folder, 'b.part'), bytes: 1e18 },
  ]
  await expect(fetchParts({ shared, parts })).rejects.toMatchObject({
    name: 'ScratchFullError',
    retryable: true,
    message: expect.stringMatching(/has \d+ MB left, and this step needs 2000000000000 MB/),
  })
  expect(await createFolderStore(dataDir).list('')).toEqual([])
})

test('a read goes by the clock of the state, which machines that read it in turns have in common', () => {
  const state = { now: () => 42 }
  const deps = { state, concurrency: 1, readLagMs: 0 } as unknown as ReadDeps
  const setup = { deps, plan: createPlan(), resource: 'customers', billing: {}, cancelled: {} }
  expect(toReadOptions(setup as unknown as Parameters<typeof toReadOptions>[0]).now()).toBe(42)
})

test('attempts that resume one another have checkpoints that sort in that order, and those names alone are loaded', async () => {
  const machine = await newMachine(await newStore())
  // With their random ends alone, ten in a row would hardly ever be in order.
  let latest: Checkpoint | undefined
  for (let attempt = 1; attempt <= 11; attempt += 1) {
    await readRows(machine, nameAttempt(latest), [String(attempt)], latest)
    latest = await latestCheckpoint(machine)
    expect(latest?.parts).toHaveLength(attempt)
  }
  const fileOf = (name: string) => join(machine.folder, `${name}.checkpoint.json`)
  await copyFile(fileOf(latest!.name), fileOf('../mine'))
  const loaded = loadCheckpoint({ ...machine, name: '../mine' })
  await expect(loaded).rejects.toMatchObject({ name: 'InvalidInput' })
})
