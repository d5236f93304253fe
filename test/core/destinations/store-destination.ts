import { readdir } from 'node:fs/promises'
import { buffer, text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createCsvDestination } from '../../../core/destinations/files/csv.ts'
import { verifyStoredExport } from '../../../core/destinations/files/verify.ts'
import type { Destination, Publication } from '../../../core/destinations/destination.ts'
import { exportPath } from '../../../core/destinations/files/publish.ts'
import type { Manifest } from '../../../core/destinations/manifest.ts'
import { createParquetDestination } from '../../../core/destinations/files/parquet.ts'
import { followPointer, pointedTo } from '../../../core/destinations/files/pointers.ts'
import type { FileStore } from '../../../core/storage/file-store.ts'
import { parseRows } from '../tables/csv.ts'
import { describeDestination, type SeenRow } from './contract.ts'
import { createWorkplace, facts, start, type Workplace } from './publication.ts'

type OpenStore = () => Promise<{ store: FileStore; close: () => Promise<void> }>

const night = `${start}-night`

const folderOf = (publication: Publication) => `exports/${exportPath(publication)}`

/** What publishing to a file store promises, whatever the store is made of. */
export function describeStoreDestination(name: string, openStore: OpenStore): void {
  describeDestination(`csv in ${name}`, async () => {
    const { store, close } = await openStore()
    const csv = createCsvDestination()
    const fileOf = async (publication: Publication, table: string) => {
      const path = folderOf(publication)
      const found = await store.read(`${path}/manifest.json`)
      if (found === undefined) return undefined
      const { tables } = JSON.parse(found.text) as Manifest
      return `${path}/${tables.find((one) => one.name === table)!.files[0]!.path}`
    }
    const destination: Destination = {
      ...csv,
      publish: (publication) => csv.publish({ ...publication, store }),
    }
    return {
      destination,
      async rows(publication, table) {
        const file = await fileOf(publication, table)
        if (file === undefined) return undefined
        const [header = [], ...rows] = parseRows(await text((await store.open(file))!))
        return rows.map((row): SeenRow =>
          Object.fromEntries(header.map((column, at) => [column ?? '', row[at] ?? null])),
        )
      },
      remove: async (publication, table) => store.remove((await fileOf(publication, table))!),
      restores: true,
      close,
    }
  })

  describe(`an export in ${name}`, () => {
    let workplace: Workplace
    let store: FileStore
    let close: () => Promise<void>
    beforeEach(async () => {
      workplace = await createWorkplace()
      ;({ store, close } = await openStore())
    })
    afterEach(async () => {
      await close()
      await workplace.close()
    })
    const one = [['{"id":"cus_1"}']]
    const folder = `exports/customers/${night}`
    const problems = async (of = folder) => (await verifyStoredExport(store, of)).problems
    const at = (day: number) => ({
      ...facts,
      startedAt: `2026-03-${String(day).padStart(2, '0')}T03:00:00.000Z`,
    })
    const publish = async (more: Partial<Publication>, rows = one) =>
      createCsvDestination().publish(await workplace.toPublication('customers', rows, { store, ...more }))
    const removeFiles = async () => {
      for (const { path } of await store.list(`exports/customers/${night}`)) await store.remove(path)
    }
    type Pointer = { run: string; manifest: string; tables: Record<string, string[]> }
    const pointer = async (file: 'latest' | 'latest-proven', of = 'exports/customers') => {
      const found = await store.read(`${of}/${file}.json`)
      return found && (JSON.parse(found.text) as Pointer)
    }

    test('names its files by what they hold, and the pointers name the files', async () => {
      const { location, manifestPath, manifest } = await publish({ run: 'night' })
      expect(location).toBe(store.locate(folder))
      expect(manifestPath).toBe(store.locate(`${folder}/manifest.json`))
      const [file] = manifest.tables[0]!.files
      expect(file!.path).toBe(`customers-${file!.sha256.slice(0, 12)}.csv`)
      expect(await pointer('latest-proven')).toMatchObject({
        run: 'night',
        manifest: `${night}/manifest.json`,
        tables: { customers: [`${night}/${file!.path}`], customer_contacts: [expect.any(String)] },
      })
      expect(await followPointer(store, 'exports/customers/latest-proven')).toBe(folder)
      expect(await followPointer(store, `${folder}/manifest.json`)).toBe(folder)
      expect(await store.list(folder)).toHaveLength(3)
      expect(await problems()).toEqual([])
    })

    test('is whole again after a second publication if an attempt was killed before it could keep a pruned file again', async () => {
      const killed: FileStore = {
        ...store,
        async create(path, contents) {
          const isManifest = path.endsWith('manifest.json')
          if (isManifest) await removeFiles()
          const isCreated = await store.create(path, contents)
          if (isManifest) throw new Error('killed by the test')
          return isCreated
        },
      }
      await expect(publish({ run: 'night', store: killed })).rejects.toThrow('killed by the test')
      expect(await problems()).toContainEqual(expect.stringContaining('customer'))
      expect(await publish({ run: 'night' })).toMatchObject({ fresh: false })
      expect(await problems()).toEqual([])
    })

    test('keeps files again that a prune removed just before the manifest was created', async () => {
      const pruned: FileStore = {
        ...store,
        async create(path, contents) {
          await removeFiles()
          return await store.create(path, contents)
        },
      }
      await publish({ run: 'night', store: pruned })
      expect(await problems()).toEqual([])
    })

    test.each(['published again', 'published'])(
      'is whole, or its publication fails, when it is %s while a prune removes it',
      async (title) => {
        if (title === 'published again') await publish({ run: 'night' })
        let listed = 0
        const pruned: FileStore = {
          ...store,
          async list(path) {
            listed += path.endsWith('night') ? 1 : 0
            // What prune does, begun after the publication found or made the manifest.
            if (listed === 1 && path.endsWith('night')) {
              await store.remove(`exports/customers/${night}/manifest.json`)
              await removeFiles()
            }
            return await store.list(path)
          },
        }
        const done = await publish({ run: 'night', store: pruned }).catch((error: unknown) => error)
        expect(listed).toBeGreaterThan(0)
        if (done instanceof Error) return
        expect(await problems()).toEqual([])
      },
    )

    test('leaves nothing on the local disk but empty folders', async () => {
      await publish({ run: 'night' })
      const left = await readdir(workplace.exports, { recursive: true, withFileTypes: true })
      expect(left.filter((entry) => !entry.isDirectory())).toEqual([])
      expect(left.map((entry) => entry.name)).toEqual(['customers'])
    })

    test('moves `latest` for every whole list and `latest-proven` for proven ones, never back to an older read', async () => {
      const unproven = { ...at(3), verdict: 'unproven' as const, reasons: ['a link was lost'] }
      const shown = async () => [(await pointer('latest'))?.run, (await pointer('latest-proven'))?.run]
      await publish({ run: 'two', facts: at(2) })
      expect(await shown()).toEqual(['two', 'two'])
      await publish({ run: 'one', facts: at(1) })
      await publish({ run: 'filtered', facts: at(9), filters: { status: 'active' } })
      await publish({ run: 'capped', facts: at(9), capped: true })
      await publish({ run: 'excel', facts: at(9), forExcel: true })
      await publish({ run: 'changes', facts: at(9), mode: 'incremental' })
      await publish({ run: 'rehearsal', facts: at(9), testMode: true })
      expect(await shown()).toEqual(['two', 'two'])
      await publish({ run: 'three', facts: unproven })
      expect(await shown()).toEqual(['three', 'two'])
      await publish({ run: 'four', facts: at(4) })
      expect(await shown()).toEqual(['four', 'four'])
      expect((await pointer('latest', 'exports/test/customers'))?.run).toBe('rehearsal')
    })

    test('never shows another workspace that published between its look and its pointers', async () => {
      const other: FileStore = {
        ...store,
        async create(path, content) {
          if (path.endsWith(`${night}/manifest.json`))
            await publish({ run: 'theirs', workspace: 'acc_other' })
          return await store.create(path, content)
        },
      }
      await expect(publish({ run: 'night', store: other, facts: at(9) })).rejects.toThrow(
        'holds the exports of workspace acc_other',
      )
      expect((await pointer('latest'))?.run).toBe('theirs')
    })

    test('has pointers that name the files of its manifest after it was removed and published again', async () => {
      const destination = createParquetDestination()
      const publication = await workplace.toPublication('customers', one, { run: 'night', store })
      await destination.publish(publication)
      const path = 'exports/parquet/customers/latest.json'
      const stale = (await store.read(path))!
      await store.replace(
        path,
        stale.text.replaceAll(/-[0-9a-f]{12}\.parquet/g, '-000000000000.parquet'),
        stale.tag,
      )
      await destination.publish(publication)
      expect((await store.read(path))?.text).toBe(stale.text)
    })

    test('shows the newest of many reads that are published at once, in any order', async () => {
      const days = [5, 2, 8, 1, 7, 3, 6, 4]
      const seen: string[] = []
      const end = new AbortController()
      const watch = async () => {
        while (!end.signal.aborted) {
          const run = (await pointer('latest-proven'))?.run
          if (run !== undefined && seen.at(-1) !== run) seen.push(run)
        }
      }
      const watching = watch()
      await Promise.all(days.map((day) => publish({ run: `run-${day}`, facts: at(day) })))
      end.abort()
      await watching
      expect((await pointer('latest'))?.run).toBe('run-8')
      expect((await pointer('latest-proven'))?.run).toBe('run-8')
      expect(seen).toEqual(seen.toSorted())
    })

    test('is whole, whatever two workers that publish it at once do', async () => {
      for (let round = 0; round < 5; round += 1) {
        const publication = await workplace.toPublication('customers', one, { run: `run-${round}`, store })
        const [first, second] = await Promise.all([
          createCsvDestination().publish(publication),
          createCsvDestination().publish({ ...publication, folder: `${publication.folder}-other` }),
        ])
        expect([first.fresh, second.fresh]).toContain(true)
        expect(second.manifest).toEqual(first.manifest)
        expect(await problems(`exports/customers/${start}-run-${round}`)).toEqual([])
      }
    })

    test('keeps the manifest of the first of two workers that read differently', async () => {
      const [first, second] = await Promise.allSettled([
        publish({ run: 'night', facts: at(1) }),
        publish({ run: 'night', facts: at(1), folder: `${workplace.exports}-other` }, [['{"id":"cus_2"}']]),
      ])
      const states = [first, second].map(({ status }) => status)
      expect(states.toSorted()).toEqual(['fulfilled', 'rejected'])
      const lost = [first, second].find((one) => one.status === 'rejected')
      expect(lost).toMatchObject({ reason: { name: 'AlreadyPublishedError' } })
      expect(await problems()).toEqual([])
    })

    test('has its manifest after all its files, and its pointers after its manifest', async () => {
      const order: string[] = []
      const noting: FileStore = {
        ...store,
        async put(path, file) {
          await store.put(path, file)
          order.push(path.replace(/-[0-9a-f]{12}/, ''))
        },
        async create(path, content) {
          const done = await store.create(path, content)
          if (!path.startsWith('checks/')) order.push(path)
          return done
        },
        async replace(path, content, tag) {
          const done = await store.replace(path, content, tag)
          if (!path.startsWith('checks/')) order.push(path)
          return done
        },
      }
      await publish({ run: 'night', store: noting })
      expect(order).toEqual([
        `exports/customers/${night}/customers.csv`,
        `exports/customers/${night}/customer_contacts.csv`,
        `exports/customers/${night}/manifest.json`,
        'exports/customers/latest.json',
        'exports/customers/latest-proven.json',
      ])
    })

    test.each(['latest', 'latest-proven'] as const)(
      'does not replace a pointer `%s` that it cannot read, and nothing that it may lead to is removed',
      async (name) => {
        const file = `exports/customers/${name}.json`
        await store.create(file, '{"version":2,"run":"of a newer version"}')
        await expect(publish({ run: 'night' })).rejects.toMatchObject({
          name: 'StoreRefusedError',
          message: expect.stringContaining('is not a pointer that this version of the connector can read'),
        })
        expect(await store.read(file)).toMatchObject({ text: '{"version":2,"run":"of a newer version"}' })
        await expect(pointedTo(store, 'exports/customers')).rejects.toThrow('is not a pointer')
      },
    )

    test('finds every damage of a published file', async () => {
      const { manifest } = await publish({ run: 'night' })
      const path = `exports/customers/${night}/${manifest.tables[0]!.files[0]!.path}`
      await store.remove(path)
      expect(await problems()).toEqual([expect.stringMatching(/^customers-.*\.csv is missing\.$/)])
      const missing = expect.stringContaining('has no manifest.json')
      expect(await problems('exports/customers/none')).toEqual([missing])
    })

    test.each([
      ['If-None-Match', 'create'],
      ['If-Match', 'replace'],
    ])('is refused by a store that ignores %s, before anything is published', async (condition, name) => {
      const ignoring = { ...store, [name]: (path: string, content: string) => force(store, path, content) }
      await expect(publish({ run: 'night', store: ignoring })).rejects.toMatchObject({
        name: 'ConditionIgnoredError',
        message: expect.stringContaining(`ignores ${condition}:`),
      })
      expect(await store.list('')).toEqual([])
    })

    test('is Parquet in folders of its own, and is verified', async () => {
      const publication = await workplace.toPublication('customers', one, { run: 'night', store })
      const { manifest } = await createParquetDestination().publish(publication)
      const ofParquet = `exports/parquet/customers/${night}`
      const [file] = manifest.tables[0]!.files
      expect(file!.path).toBe(`customers-${file!.sha256.slice(0, 12)}.parquet`)
      const bytes = await buffer((await store.open(`${ofParquet}/${file!.path}`))!)
      expect(bytes.subarray(0, 4).toString()).toBe('PAR1')
      expect(await problems(ofParquet)).toEqual([])
      expect((await pointer('latest', 'exports/parquet/customers'))?.run).toBe('night')
      expect(await createParquetDestination().publish(publication)).toMatchObject({ fresh: false })
    })
  })
}

/** Writes without any condition. */
async function force(store: FileStore, path: string, content: string): Promise<boolean> {
  await store.remove(path)
  return await store.create(path, content)
}
