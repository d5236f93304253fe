import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import type { DestinationName } from '../../../core/destinations/names.ts'
import { saveCheckpoint } from '../../../core/exports/parts/checkpoint.ts'
import { fetchParts } from '../../../core/exports/parts/chunks.ts'
import { pruneParts, removeOldExport, reserveParts } from '../../../core/exports/prune.ts'
import { partsFolder } from '../../../core/exports/parts/read-plan.ts'
import { savePlan } from '../../../core/exports/plan.ts'
import { createFolderStore } from '../../../core/storage/folder-store.ts'
import { cached } from '../../../core/storage/cached.ts'
import type { ReadOutcome } from '../../../core/reading/outcome.ts'
import type { Publication } from '../../../core/state/publications.ts'
import { createPlan } from '../../system/export/plan.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'
import { checkpointOf, newStore } from './machine.ts'
import { publicationOf } from './record-read.ts'
import { writePart } from './write-part.ts'

const day = 24 * 3600_000

/** The last checkpoint of a read, which has come to its end or not. */
const lastCheckpoint = (ended: boolean) =>
  ended
    ? checkpointOf({ name: '00001-aaaaaaaa.ended', outcome: { verdict: 'proven' } as ReadOutcome })
    : checkpointOf({ name: '00001-aaaaaaaa.00001' })
const nothing = { publications: { all: () => Promise.resolve([]) } }

const both: readonly DestinationName[] = ['csv', 'postgres']

test('parts are kept for 14 days, of the last 3 runs, and while a finished read is missing in a destination', async () => {
  const dataDir = await temporaryFolder()
  const shared = cached(dataDir)
  const now = Date.now()
  const all: Publication[] = []
  const leave = async (
    run: string,
    { age, published, ended = true }: { age: number; published: readonly DestinationName[]; ended?: boolean },
  ) => {
    await savePlan({ dataDir, shared, plan: createPlan({ run, to: ['csv', 'postgres'] }) })
    const folder = partsFolder({ dataDir, run, resource: 'customers' })
    await saveCheckpoint({ shared, folder, checkpoint: lastCheckpoint(ended) })
    all.push(...published.map((destination) => publicationOf({ run, destination })))
    await utimes(join(dataDir, 'parts', run), new Date(), new Date(now - age * day))
  }
  await leave('newest', { age: 1, published: both })
  await leave('old-but-of-the-last-3', { age: 20, published: both })
  await leave('too', { age: 21, published: both })
  await leave('old', { age: 22, published: both })
  await leave('old-and-unpublished', { age: 23, published: [] })
  await leave('old-and-still-missing-in-one', { age: 23, published: ['csv'] })
  // A list that fails every night must not fill the disk.
  await leave('old-and-never-read-to-the-end', { age: 23, published: [], ended: false })
  const stray = join(dataDir, 'parts', '.stray')
  await writeFile(stray, '')
  await utimes(stray, new Date(), new Date(now - 30 * day))
  const ofRun = ({ run }: { run?: string } = {}) => Promise.resolve(all.filter((one) => one.run === run))
  await pruneParts({ dataDir, shared, state: { publications: { all: ofRun } }, now })
  const left = await readdir(join(dataDir, 'parts'))
  expect(left.toSorted().join(' ')).toBe(
    '.stray newest old-and-still-missing-in-one old-and-unpublished old-but-of-the-last-3 too',
  )
})

test('the parts of a run that somebody is about to publish are kept for another 14 days, and those of no other run', async () => {
  const dataDir = await temporaryFolder()
  const shared = cached(dataDir)
  const now = Date.now()
  const ages = { '1': 1, '2': 2, '3': 3, again: 23, other: 23 }
  for (const run of Object.keys(ages)) {
    await savePlan({ dataDir, shared, plan: createPlan({ run, to: ['csv'] }) })
    const folder = partsFolder({ dataDir, run, resource: 'customers' })
    await saveCheckpoint({ shared, folder, checkpoint: lastCheckpoint(true) })
  }
  for (const [run, age] of Object.entries(ages))
    await utimes(join(dataDir, 'parts', run), new Date(), new Date(now - age * day))
  const reserved = await reserveParts({ dataDir, shared }, { run: 'again', resources: ['customers'] })
  expect(reserved).toEqual({ customers: '00001-aaaaaaaa.ended' })
  const published = ({ run = '' } = {}) => Promise.resolve([publicationOf({ run, destination: 'csv' })])
  const prune = async (at: number) => {
    await pruneParts({ dataDir, shared, state: { publications: { all: published } }, now: at })
    return (await readdir(join(dataDir, 'parts'))).toSorted()
  }
  expect(await prune(now)).toEqual(['1', '2', '3', 'again'])
  // The others are the last three again: until then, only its own time keeps it.
  for (const run of ['1', '2', '3']) {
    const later = new Date(now + 10 * day)
    await utimes(join(dataDir, 'parts', run), later, later)
  }
  expect(await prune(now + 13 * day)).toContain('again')
  expect(await prune(now + 15 * day)).not.toContain('again')
})

test('of several workers, each removes the copies that it has not used for a day, and nothing that it alone has', async () => {
  const dataDir = await temporaryFolder()
  const shared = cached(dataDir, await newStore())
  const now = Date.now()
  const leave = async (run: string, { isKept = true, used = 3 }: { isKept?: boolean; used?: number }) => {
    const folder = join(dataDir, 'parts', run)
    await mkdir(join(folder, 'customers/ranges/00'), { recursive: true })
    if (isKept) await shared.create(join(folder, 'run.json'), run)
    else await writeFile(join(folder, 'run.json'), run)
    const old = new Date(now - 3 * day)
    for (const part of ['customers/ranges', 'customers', '']) await utimes(join(folder, part), old, old)
    await utimes(join(folder, 'customers/ranges/00'), old, new Date(now - used * day))
  }
  await leave('a copy', {})
  await leave('in use', { used: 0.5 })
  await leave('from before', { isKept: false })
  await pruneParts({ dataDir, shared, state: nothing, now })
  expect((await readdir(join(dataDir, 'parts'))).toSorted()).toEqual(['from before', 'in use'])
})

test('copies that a step is about to read are not removed under it, however long ago they were written', async () => {
  const dataDir = await temporaryFolder()
  const shared = cached(dataDir, await newStore())
  const folder = join(dataDir, 'parts/paused')
  const path = join(folder, 'customers/customers.a.part')
  await shared.create(join(folder, 'run.json'), 'paused')
  await mkdir(dirname(path))
  const part = await writePart({ table: 'customers', path, text: 'a\n', rows: 1 })
  await shared.keep(path)
  const old = new Date(Date.now() - 3 * day)
  for (const part of ['customers', '']) await utimes(join(folder, part), old, old)
  await fetchParts({ shared, parts: [part] })
  await pruneParts({ dataDir, shared, state: nothing, now: Date.now() })
  expect(await readdir(join(folder, 'customers'))).toEqual(['customers.a.part'])
})

test('pruning a bucket leaves no manifest without its files when the run is published again meanwhile', async () => {
  const root = await temporaryFolder()
  const store = createFolderStore(root)
  const folder = 'exports/customers/night'
  for (const name of ['customers-1.csv', 'manifest.json']) await store.create(`${folder}/${name}`, name)
  let listed = 0
  const files: typeof store = {
    ...store,
    folder: undefined,
    async list(path) {
      const found = await store.list(path)
      listed += 1
      // Another process had kept its files and creates the manifest now.
      if (listed === 1) await store.create(`${folder}/manifest.json`, 'again')
      return found
    },
  }
  const old = { run: 'night', resource: 'customers', startedAt: '', bytes: 0, folder: store.locate(folder) }
  await removeOldExport({ dataDir: root, files, old })
  expect(await store.list(folder)).toEqual([])
})
