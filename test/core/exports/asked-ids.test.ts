import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { keepAskedIds, readAskedIds } from '../../../core/exports/requested-ids.ts'
import { cached, type SharedFolder } from '../../../core/storage/cached.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'
import { newMachine, newStore } from './machine.ts'

const keep = (place: { dataDir: string; shared: SharedFolder }, ids: string[]) =>
  keepAskedIds({ ...place, run: 'r', source: { ids: () => ids, empty: 0 } })

test.each(['alone', 'of several'])(
  'a worker %s reads the ids that the plan counts, whatever another attempt to open the run has kept',
  async (which) => {
    const store = which === 'alone' ? undefined : await newStore()
    const first = await newMachine(store)
    const planned = await keep(first, ['1', '2', '1'])
    const other = store === undefined ? first : await newMachine(store)
    await keep(other, ['1', '3'])
    for (const place of [first, other])
      expect(await readAskedIds({ ...place, run: 'r', asked: planned })).toEqual(['1', '2'])
  },
)

test('ids that one worker could not keep are not read instead of those that another one has kept', async () => {
  const store = await newStore()
  const dataDir = await temporaryFolder()
  const failing = cached(dataDir, {
    ...store,
    put: () => Promise.reject(new Error('away')),
  })
  await expect(keep({ dataDir, shared: failing }, ['old'])).rejects.toThrow('away')
  const asked = await keep(await newMachine(store), ['new'])
  const again = cached(dataDir, store)
  expect(await readAskedIds({ dataDir, shared: again, run: 'r', asked })).toEqual(['new'])
})

test.each([
  ['ends early', '1\n2\n'],
  ['holds another id', '1\n2\n4\n'],
])('a file of ids that %s is damaged', async (_how, text) => {
  const place = await newMachine()
  const asked = await keep(place, ['1', '2', '3'])
  await writeFile(join(place.dataDir, `parts/r/ids-${asked.sha256.slice(0, 16)}.txt`), text)
  await expect(readAskedIds({ ...place, run: 'r', asked })).rejects.toMatchObject({
    name: 'PartsDamagedError',
  })
})
