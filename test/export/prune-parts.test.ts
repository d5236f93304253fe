import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { pruneParts } from '../../activities/prune-parts.ts'

const day = 24 * 3600_000

test('parts are kept 14 days, of the last 3 runs, and until they are published; a stray file is no trouble', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'prune-'))
  onTestFinished(() => rm(dataDir, { recursive: true }))
  const now = Date.now()
  const leave = async (run: string, { age, published }: { age: number; published: boolean }) => {
    const folder = join(dataDir, 'parts', run, 'customers')
    await mkdir(folder, { recursive: true })
    if (published) await writeFile(join(folder, 'published.json'), '{}')
    await utimes(join(dataDir, 'parts', run), new Date(), new Date(now - age * day))
  }
  await leave('newest', { age: 1, published: true })
  await leave('old but of the last 3', { age: 20, published: true })
  await leave('too', { age: 21, published: true })
  await leave('old', { age: 22, published: true })
  await leave('old and unpublished', { age: 23, published: false })
  const stray = join(dataDir, 'parts', '.stray')
  await writeFile(stray, '')
  await utimes(stray, new Date(), new Date(now - 30 * day))
  await pruneParts({ dataDir, now })
  expect((await readdir(join(dataDir, 'parts'))).toSorted()).toEqual(
    ['.stray', 'newest', 'old but of the last 3', 'old and unpublished', 'too'].toSorted(),
  )
})
