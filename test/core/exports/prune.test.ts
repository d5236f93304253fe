import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { DestinationName } from '../../../core/destinations/names.ts'
import { fetchParts } from '../../../core/exports/parts/fetch-parts.ts'
import { pruneParts } from '../../../core/exports/parts/prune.ts'
import { markPublished, markPublishing } from '../../../core/exports/parts/publish-record.ts'
import { createFolderStore } from '../../../core/storage/folder-store.ts'
import { createSharedFolder } from '../../../core/storage/shared-folder.ts'

const day = 24 * 3600_000
const newFolder = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'prune-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}
const both: readonly DestinationName[] = ['csv', 'postgres']

test('parts are kept 14 days, of the last 3 runs, and until every destination has them; a stray file is no trouble', async () => {
  const dataDir = await newFolder()
  const shared = createSharedFolder({ dataDir, store: undefined })
  const now = Date.now()
  const leave = async (
    run: string,
    { age, published }: { age: number; published: readonly DestinationName[] },
  ) => {
    const folder = join(dataDir, 'parts', run, 'customers')
    await mkdir(folder, { recursive: true })
    for (const destination of published)
      await markPublished({ shared, folder }, { destination, asked: ['csv', 'postgres'] })
    await utimes(join(dataDir, 'parts', run), new Date(), new Date(now - age * day))
  }
  await leave('newest', { age: 1, published: both })
  await leave('old but of the last 3', { age: 20, published: both })
  await leave('too', { age: 21, published: both })
  await leave('old', { age: 22, published: both })
  await leave('old and unpublished', { age: 23, published: [] })
  await leave('old and still missing in one', { age: 23, published: ['csv'] })
  const again = { execution: { workflowId: 'publish', runId: 'a' }, asked: ['duckdb' as const] }
  await leave('old and asked for once more', { age: 23, published: both })
  await markPublishing(
    { shared, folder: join(dataDir, 'parts', 'old and asked for once more', 'customers') },
    again,
  )
  const stray = join(dataDir, 'parts', '.stray')
  await writeFile(stray, '')
  await utimes(stray, new Date(), new Date(now - 30 * day))
  await pruneParts({ dataDir, shared, now })
  expect((await readdir(join(dataDir, 'parts'))).toSorted()).toEqual(
    [
      '.stray',
      'newest',
      'old and asked for once more',
      'old and still missing in one',
      'old and unpublished',
      'old but of the last 3',
      'too',
    ].toSorted(),
  )
})

test('of several workers, each removes the copies that it has not used for a day, and nothing that it alone has', async () => {
  const dataDir = await newFolder()
  const shared = createSharedFolder({ dataDir, store: createFolderStore(await newFolder()) })
  const now = Date.now()
  const leave = async (run: string, { isKept = true, used = 3 }: { isKept?: boolean; used?: number }) => {
    const folder = join(dataDir, 'parts', run)
    await mkdir(join(folder, 'customers/ranges/00'), { recursive: true })
    if (isKept) await shared.create(join(folder, 'run.json'), run)
    const old = new Date(now - 3 * day)
    for (const part of ['customers/ranges', 'customers', '']) await utimes(join(folder, part), old, old)
    await utimes(join(folder, 'customers/ranges/00'), old, new Date(now - used * day))
  }
  await leave('a copy', {})
  await leave('in use', { used: 0.5 })
  await leave('from before', { isKept: false })
  await pruneParts({ dataDir, shared, now })
  expect((await readdir(join(dataDir, 'parts'))).toSorted()).toEqual(['from before', 'in use'])
})

test('copies that a step is about to read are not removed under it, however long ago they were written', async () => {
  const dataDir = await newFolder()
  const shared = createSharedFolder({ dataDir, store: createFolderStore(await newFolder()) })
  const folder = join(dataDir, 'parts/paused')
  const path = join(folder, 'customers/customers.a.part')
  await shared.create(join(folder, 'run.json'), 'paused')
  await mkdir(dirname(path))
  await writeFile(path, 'a\n')
  await shared.keep(path)
  const old = new Date(Date.now() - 3 * day)
  for (const part of ['customers', '']) await utimes(join(folder, part), old, old)
  await fetchParts({ dataDir, shared, parts: [{ table: 'customers', path, bytes: 2, rows: 1 }] })
  await pruneParts({ dataDir, shared, now: Date.now() })
  expect(await readdir(join(folder, 'customers'))).toEqual(['customers.a.part'])
})
