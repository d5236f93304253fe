import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createFolderStore } from '../../../core/storage/folder-store.ts'
import { cached } from '../../../core/storage/cached.ts'

async function newFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'shared-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}

/** A data folder, and how a file of it is called. */
function openFolder(dataDir: string, store?: ReturnType<typeof createFolderStore>) {
  return { shared: cached(dataDir, store), at: (path: string) => join(dataDir, path) }
}

async function twoMachines() {
  const store = createFolderStore(await newFolder())
  return [openFolder(await newFolder(), store), openFolder(await newFolder(), store)] as const
}

async function write(file: string, text: string) {
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, text)
  return file
}

describe('files that the steps of a run leave to each other', () => {
  test('are there for another machine once they are kept, under the same path', async () => {
    const [one, other] = await twoMachines()
    await one.shared.keep(await write(one.at('parts/run 1/customers/a.part'), 'a,b\n'))
    await other.shared.fetch(other.at('parts/run 1/customers/a.part'))
    expect(await readFile(other.at('parts/run 1/customers/a.part'), 'utf8')).toBe('a,b\n')
    expect(await other.shared.list(other.at('parts/run 1/customers'))).toEqual(['a.part'])
    expect(await other.shared.list(other.at('parts/run 1'))).toEqual([])
  })

  test('are fetched again where the local copy is too short, and only then', async () => {
    const [one, other] = await twoMachines()
    await one.shared.keep(await write(one.at('a.part'), 'whole'))
    const copy = await write(other.at('a.part'), 'wh')
    await other.shared.fetch(copy, { bytes: 5 })
    expect(await readFile(copy, 'utf8')).toBe('whole')
    const { ino } = await stat(copy)
    await other.shared.fetch(copy, { bytes: 5 })
    expect((await stat(copy)).ino).toBe(ino)
  })

  test('that arrive cut short are asked for again, and nothing of them is left', async () => {
    const [one, other] = await twoMachines()
    await one.shared.keep(await write(one.at('a.part'), 'cut'))
    await expect(other.shared.fetch(other.at('a.part'), { bytes: 5 })).rejects.toMatchObject({
      name: 'StoreAwayError',
      retryable: true,
    })
    await expect(stat(other.at('a.part'))).rejects.toThrow(/ENOENT/)
  })

  test('are no longer fetched once the step is cancelled, for its own reason', async () => {
    const [one, other] = await twoMachines()
    await one.shared.keep(await write(one.at('a.part'), 'whole'))
    const reason = new Error('cancelled')
    const cancelled = AbortSignal.abort(reason)
    const fetching = other.shared.fetch(other.at('a.part'), { signal: cancelled })
    await expect(fetching).rejects.toBe(reason)
    await expect(stat(other.at('a.part'))).rejects.toThrow(/ENOENT/)
  })

  test('that are kept nowhere are missing after a fetch, and leave nothing behind', async () => {
    const [one] = await twoMachines()
    await one.shared.fetch(one.at('none/a.part'))
    await expect(stat(one.at('none'))).rejects.toThrow(/ENOENT/)
  })

  test.each(['on one machine', 'on two machines'])(
    'are created by one step alone %s; the same text is not a conflict',
    async (where) => {
      const [one, second] = await twoMachines()
      const alone = openFolder(await newFolder())
      const [first, other] = where === 'on two machines' ? [one, second] : [alone, alone]
      const created = await Promise.all([
        first.shared.create(first.at('run.json'), 'a'),
        other.shared.create(other.at('run.json'), 'b'),
      ])
      expect(created.filter(Boolean)).toHaveLength(1)
      const winner = created[0] ? 'a' : 'b'
      expect(await other.shared.create(other.at('run.json'), winner)).toBe(true)
      await other.shared.fetch(other.at('run.json'))
      expect(await readFile(other.at('run.json'), 'utf8')).toBe(winner)
    },
  )

  test.each(['on one machine', 'on two machines'])(
    'are changed by several steps %s, and no change is lost',
    async (where) => {
      const [one, second] = await twoMachines()
      const alone = openFolder(await newFolder())
      const machines = where === 'on two machines' ? [one, second] : [alone, alone]
      const changes = Array.from({ length: 8 }, (_, index) => {
        const { shared, at } = machines[index % 2]!
        return shared.update(at('note.json'), (text = '') => `${text}${index},`)
      })
      await Promise.all(changes)
      const { shared, at } = machines[0]!
      const numbers = (await shared.read(at('note.json')))?.split(',').filter((one) => one !== '')
      expect(numbers?.toSorted()).toEqual(['0', '1', '2', '3', '4', '5', '6', '7'])
    },
  )
})
