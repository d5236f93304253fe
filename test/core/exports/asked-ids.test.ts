import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { keepAskedIds, readAskedIds } from '../../../core/exports/requested-ids.ts'
import { createFolderStore } from '../../../core/storage/folder-store.ts'
import { cached, type SharedFolder } from '../../../core/storage/cached.ts'

async function newFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'ids-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

const keep = (place: { dataDir: string; shared: SharedFolder }, ids: string[]) =>
  keepAskedIds({ ...place, run: 'r', source: { ids: () => ids, empty: 0 } })

test.each(['alone', 'of several'])(
  'a worker %s reads the ids that the plan counts, whatever another attempt to open the run has kept',
  async (which) => {
    const store = which === 'alone' ? undefined : createFolderStore(await newFolder())
    const newPlace = async () => {
      const dataDir = await newFolder()
      return { dataDir, shared: cached(dataDir, store) }
    }
    const first = await newPlace()
    const planned = await keep(first, ['1', '2', '1'])
    const other = store === undefined ? first : await newPlace()
    await keep(other, ['1', '3'])
    for (const place of [first, other])
      expect(await readAskedIds({ ...place, run: 'r', asked: planned })).toEqual(['1', '2'])
  },
)

test('ids that one worker could not keep are not read instead of those that another one has kept', async () => {
  const store = createFolderStore(await newFolder())
  const dataDir = await newFolder()
  const failing = cached(dataDir, {
    ...store,
    put: () => Promise.reject(new Error('away')),
  })
  await expect(keep({ dataDir, shared: failing }, ['old'])).rejects.toThrow('away')
  const otherDir = await newFolder()
  const asked = await keep({ dataDir: otherDir, shared: cached(otherDir, store) }, ['new'])
  const again = cached(dataDir, store)
  expect(await readAskedIds({ dataDir, shared: again, run: 'r', asked })).toEqual(['new'])
})

test.each([
  ['ends early', '1\n2\n'],
  ['holds another id', '1\n2\n4\n'],
])('a file of ids that %s is damaged', async (_how, text) => {
  const dataDir = await newFolder()
  const place = { dataDir, shared: cached(dataDir) }
  const asked = await keep(place, ['1', '2', '3'])
  await writeFile(join(dataDir, `parts/r/ids-${asked.sha256.slice(0, 16)}.txt`), text)
  await expect(readAskedIds({ ...place, run: 'r', asked })).rejects.toMatchObject({
    name: 'PartsDamagedError',
  })
})
