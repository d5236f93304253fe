import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { DestinationName } from '../../../core/destinations/names.ts'
import { pruneParts } from '../../../core/exports/parts/prune.ts'
import { markPublished, markPublishing } from '../../../core/exports/parts/publish-record.ts'

const day = 24 * 3600_000
const both: readonly DestinationName[] = ['csv', 'postgres']

test('parts are kept 14 days, of the last 3 runs, and until every destination has them; a stray file is no trouble', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'prune-'))
  onTestFinished(() => rm(dataDir, { recursive: true }))
  const now = Date.now()
  const leave = async (
    run: string,
    { age, published }: { age: number; published: readonly DestinationName[] },
  ) => {
    const folder = join(dataDir, 'parts', run, 'customers')
    await mkdir(folder, { recursive: true })
    for (const destination of published)
      await markPublished(folder, { destination, asked: ['csv', 'postgres'] })
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
  await markPublishing(join(dataDir, 'parts', 'old and asked for once more', 'customers'), again)
  const stray = join(dataDir, 'parts', '.stray')
  await writeFile(stray, '')
  await utimes(stray, new Date(), new Date(now - 30 * day))
  await pruneParts({ dataDir, now })
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
