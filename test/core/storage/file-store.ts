import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { FileStore } from '../../../core/storage/file-store.ts'
import { proveStore } from '../../../core/storage/prove-store.ts'

/** What every file store promises. `open` gives two views of one empty store, as two workers have them. */
export function describeFileStore(
  name: string,
  open: () => Promise<{ store: FileStore; other: FileStore; close: () => Promise<void> }>,
): void {
  describe(`keeping files in ${name}`, () => {
    let opened: Awaited<ReturnType<typeof open>>
    let store: FileStore
    let other: FileStore
    let scratch: string
    beforeEach(async () => {
      opened = await open()
      ;({ store, other } = opened)
      scratch = await mkdtemp(join(tmpdir(), 'store-'))
    })
    afterEach(async () => {
      await opened.close()
      await rm(scratch, { recursive: true })
    })
    const toFile = async (content: string | Buffer) => {
      const file = join(scratch, randomBytes(4).toString('hex'))
      await writeFile(file, content)
      return file
    }
    const bytesOf = async (path: string) => {
      const stream = await other.open(path)
      return stream && (await buffer(stream))
    }

    test('passes the proof that publishing begins with, and keeps nothing of it', async () => {
      expect(await proveStore(store)).toEqual({ mayRemove: true })
      expect(await store.list('')).toEqual([])
    })

    test('keeps a file byte for byte, the last one under each path', async () => {
      await store.put('exports/a b/ñ.csv', await toFile('first'))
      const bytes = randomBytes(100_000)
      await store.put('exports/a b/ñ.csv', await toFile(bytes))
      await store.put('exports/empty.csv', await toFile(''))
      expect((await bytesOf('exports/a b/ñ.csv'))?.equals(bytes)).toBe(true)
      expect((await bytesOf('exports/empty.csv'))?.length).toBe(0)
      expect(await bytesOf('exports/none.csv')).toBeUndefined()
    })

    test('is not put once its signal is aborted', async () => {
      const signal = AbortSignal.abort(new Error('ended by the test'))
      await expect(store.put('a/one.csv', await toFile('1'), { signal })).rejects.toThrow('ended by the test')
      expect(await store.list('')).toEqual([])
    })

    test('says of a local file that cannot be read what it is', async () => {
      const missing = store.put('a/one.csv', join(scratch, 'missing'))
      await expect(missing).rejects.toMatchObject({ code: 'ENOENT' })
      expect(await store.list('')).toEqual([])
    })

    test('lists every file below a folder with its size, and none of a folder whose name begins the same', async () => {
      for (const path of ['a/one.csv', 'a/b/two.csv', 'ab/three.csv'])
        await store.put(path, await toFile(path))
      const listed = (await other.list('a')).toSorted((x, y) => (x.path < y.path ? -1 : 1))
      expect(listed).toEqual([
        { path: 'a/b/two.csv', bytes: 11 },
        { path: 'a/one.csv', bytes: 9 },
      ])
      expect(await store.list('')).toHaveLength(3)
      expect(await store.list('none')).toEqual([])
    })

    test('creates a text once: another text under its path is refused, the same one is not a conflict', async () => {
      expect(await store.create('exports/manifest.json', 'one')).toBe(true)
      expect(await other.create('exports/manifest.json', 'two')).toBe(false)
      expect(await other.create('exports/manifest.json', 'one')).toBe(true)
      expect(await store.read('exports/manifest.json')).toMatchObject({ text: 'one' })
    })

    test('gives a text without its tag, as it was written last', async () => {
      expect(await store.readText('latest.json')).toBeUndefined()
      for (const text of ['1', '2', '']) {
        await store.replace('latest.json', text, (await store.read('latest.json'))?.tag)
        expect(await other.readText('latest.json')).toBe(text)
      }
    })

    test('replaces a text only if it is still the version that was read', async () => {
      expect(await store.replace('latest.json', '1', undefined)).toBe(true)
      const first = (await store.read('latest.json'))!
      expect(await other.replace('latest.json', '2', first.tag)).toBe(true)
      expect(await store.replace('latest.json', '3', first.tag)).toBe(false)
      expect(await store.replace('latest.json', '3', undefined)).toBe(false)
      expect(await store.read('latest.json')).toMatchObject({ text: '2' })
      expect((await store.read('latest.json'))!.tag).not.toBe(first.tag)
    })

    test('does not bring back a text that was removed', async () => {
      await store.create('latest.json', '1')
      const { tag } = (await store.read('latest.json'))!
      await other.remove('latest.json')
      expect(await store.replace('latest.json', '2', tag)).toBe(false)
      expect(await store.read('latest.json')).toBeUndefined()
    })

    test('removes a file, and one that does not exist without complaint', async () => {
      await store.put('a/one.csv', await toFile('1'))
      await store.remove('a/one.csv')
      await store.remove('a/one.csv')
      expect(await bytesOf('a/one.csv')).toBeUndefined()
    })

    test('lets one of many writers win, whichever it is', async () => {
      const writers = Array.from({ length: 12 }, (_, at) => ({ text: `writer ${at}`, at }))
      const created = await Promise.all(
        writers.map(({ text, at }) => (at % 2 ? store : other).create('race.json', text)),
      )
      expect(created.filter(Boolean)).toHaveLength(1)
      const { text, tag } = (await store.read('race.json'))!
      expect(text).toBe(`writer ${created.indexOf(true)}`)
      const replaced = await Promise.all(
        writers.map((writer) => (writer.at % 2 ? store : other).replace('race.json', `${writer.text}!`, tag)),
      )
      expect(replaced.filter(Boolean)).toHaveLength(1)
      expect((await store.read('race.json'))!.text).toBe(`writer ${replaced.indexOf(true)}!`)
    })

    test('names a place that leads back to its path, and none outside', () => {
      expect(store.pathOf(store.locate('exports/a/manifest.json'))).toBe('exports/a/manifest.json')
      expect(store.pathOf(`${store.locate('')}-other/manifest.json`)).toBeUndefined()
    })
  })
}
