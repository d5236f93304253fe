import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Publication, PublishStep } from '../../../core/destinations/destination.ts'
import { createDuckDbDestination } from '../../../core/destinations/duckdb/duckdb.ts'
import { memoryLimits, withDuckDb } from '../../../core/destinations/duckdb/open.ts'
import { publishInChild } from './children.ts'
import { askDuckDb } from '../../core/destinations/duckdb-file.ts'
import { createWorkplace, facts, noise, type Workplace } from '../../core/destinations/publication.ts'

describe('a DuckDB file', () => {
  let workplace: Workplace
  let path: string
  beforeEach(async () => {
    workplace = await createWorkplace()
    path = join(workplace.folder, 'warehouse.duckdb')
  })
  afterEach(() => workplace.close())

  const publish = (publication: Publication) =>
    createDuckDbDestination({ folder: workplace.folder }).publish(publication)
  const before = () =>
    workplace.toPublication('customers', [['{"id":"a","contacts":[{}]}']], { run: 'before' })
  const large = (bytes: number) =>
    workplace.toPublication('customers', noise(bytes), {
      run: 'after',
      mode: 'incremental',
      facts: { ...facts, startedAt: '2026-03-02T03:00:00.000Z' },
    })
  const ids = async () => (await askDuckDb(path, 'select id from customers order by id'))?.map(({ id }) => id)
  const runs = async () =>
    (await askDuckDb(path, 'select run from _exports order by run'))?.map(({ run }) => run)
  const besides = async () => (await readdir(workplace.folder)).filter((name) => name.includes('duckdb'))

  test.each<PublishStep>(['staged', 'counted', 'visible'])(
    'is whole after a SIGKILL when a publication was %s, and takes it again',
    { tags: ['long'] },
    async (killAt) => {
      await publish(await before())
      const publication = await large(3_000_000)
      const { signal } = await publishInChild(workplace, {
        to: { duckdb: workplace.folder },
        publication,
        killAt,
      })
      expect(signal).toBe('SIGKILL')
      const isThere = killAt === 'visible'
      // Who only looks gets no error from what a dead one left.
      const looking = createDuckDbDestination({ folder: workplace.folder })
      expect(await looking.coveredThrough(publication, publication)).toBe(
        Date.parse(facts.completeThrough ?? ''),
      )
      expect(await runs()).toEqual(isThere ? ['after', 'before'] : ['before'])
      expect(await ids()).toHaveLength(isThere ? 3_001 : 1)
      expect(await publish(publication)).toMatchObject({ fresh: !isThere })
      expect(await ids()).toHaveLength(3_001)
      expect(await besides()).toEqual(['warehouse.duckdb'])
    },
  )

  test(
    'that can grow no more ends the publishing with a sentence, as it was',
    { tags: ['long'] },
    async () => {
      await publish(await before())
      const publication = await large(12_000_000)
      const { said } = await publishInChild(
        workplace,
        { to: { duckdb: workplace.folder }, publication },
        { fileBlocks: 4_000 },
      )
      expect(said).toMatch(/^UnwritableError: Can't write to .*warehouse\.duckdb: the file would be larger/)
      expect([await ids(), await runs()]).toEqual([['a'], ['before']])
      await publish(publication)
      expect(await ids()).toHaveLength(12_001)
    },
  )

  test('that another process has locked is not waited for: a message names the process', async () => {
    await publish(await before())
    const holder = spawn(
      process.execPath,
      [
        '--input-type=module',
        '-e',
        `import { DuckDBInstance } from '@duckdb/node-api'
        const instance = await DuckDBInstance.create(${JSON.stringify(path)})
        console.log('held')
        process.stdin.resume().on('end', () => instance.closeSync())`,
      ],
      { stdio: ['pipe', 'pipe', 'inherit'] },
    )
    await once(holder.stdout, 'data')
    const publication = await large(10_000)
    await expect(publish(publication)).rejects.toMatchObject({
      name: 'WarehouseAwayError',
      message: expect.stringMatching(
        new RegExp(`warehouse\\.duckdb is held by another process: .*PID ${holder.pid}\\)`),
      ),
    })
    holder.stdin.end()
    await once(holder, 'close')
    expect(await ids()).toEqual(['a'])
    await publish(publication)
    expect(await ids()).toHaveLength(11)
  })

  test(
    'that needs more than its memory keeps the rest on disk in the meantime, and leaves nothing there',
    { tags: ['long'] },
    async () => {
      const beside = join(workplace.folder, 'not yet', 'beside')
      const opening = { path: join(workplace.folder, 'large.duckdb'), memory: memoryLimits.publish, beside }
      await withDuckDb(opening, async (db) => {
        // 200 MB that no packing makes less, in a table of the session, as what is staged.
        await db.run(`create temporary table large as
          select range as id, md5(range::varchar) || sha256(range::varchar) as noise from range(2_000_000)`)
        expect((await readdir(join(beside, 'spill'))).length).toBeGreaterThan(0)
        expect(await db.all('select count(distinct id) as n from large')).toEqual([{ n: '2000000' }])
      })
      expect(await readdir(join(workplace.folder, 'not yet'))).toEqual([])
    },
  )

  test('takes many rows of 100 kB', { tags: ['long'] }, async () => {
    await publish(await before())
    const text = noise(60_000_000).flat()
    const records = Array.from({ length: 600 }, (_, at) =>
      JSON.stringify({ id: `b${at}`, name: text.slice(at * 100, (at + 1) * 100).join('') }),
    )
    const publication = { ...(await large(1_000)), ...(await workplace.toParts('customers', [records])) }
    await publish(publication)
    expect(await ids()).toHaveLength(601)
    expect(await runs()).toEqual(['after', 'before'])
    expect(await besides()).toEqual(['warehouse.duckdb'])
  })

  test.each([9, 40])(
    'takes a cell of %i MB, which is longer than a buffer',
    { tags: ['long'] },
    async (size) => {
      const text = 'á"\n,'.repeat(size * 200_000)
      const long = JSON.stringify({ id: 'b', name: text })
      await publish(await workplace.toPublication('customers', [['{"id":"a"}', long, '{"id":"c"}']]))
      const rows = await askDuckDb(path, 'select id, name from customers order by id')
      expect(rows?.map(({ id }) => id)).toEqual(['a', 'b', 'c'])
      expect(rows?.[1]?.['name'] === text).toBe(true)
    },
  )

  test('that is none is left as it is', async () => {
    await writeFile(path, 'this is not a database, but it is long enough to look at. '.repeat(400))
    await expect(publish(await before())).rejects.toMatchObject({ name: 'WarehouseRefusedError' })
    expect(await besides()).toEqual(['warehouse.duckdb'])
  })

  test('takes parts whose path looks like a pattern, and none beside them', async () => {
    const publication = await before()
    const [like, decoys] = [join(workplace.folder, 'a*'), join(workplace.folder, 'axb')]
    await Promise.all([mkdir(like), mkdir(decoys)])
    const parts = []
    for (const [at, part] of publication.parts.entries()) {
      const moved = { ...part, path: join(like, `${at}.part`) }
      await copyFile(part.path, moved.path)
      await copyFile(moved.path, join(decoys, `${at}.part`))
      parts.push(moved)
    }
    await publish({ ...publication, parts })
    expect(await ids()).toEqual(['a'])
  })
})
