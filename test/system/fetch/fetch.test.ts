import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verifyExport } from '../../../core/destinations/files/verify.ts'
import type { FetchInput } from '../../../core/exports/input.ts'
import type { RunningWorker } from '../../../worker/start-worker.ts'
import { askDuckDb } from '../../core/destinations/duckdb-file.ts'
import { startPostgres } from '../destinations/postgres-server.ts'
import {
  asked,
  connectTemporal,
  folderOf,
  historyOf,
  openTestWorker,
  openWorld,
  type World,
} from '../export/world.ts'
import { idsOf, putFile, rowsIn, startFetch } from './world.ts'

let world: World
let worker: RunningWorker
let postgres: Awaited<ReturnType<typeof startPostgres>>

beforeAll(async () => {
  postgres = await startPostgres()
  world = await openWorld({ counts: { customers: 1, creditnotes: 300, cancellations: 40 } })
  worker = await openTestWorker(world, { WAREHOUSE_URL: await postgres.createDatabase() })
})

afterAll(async () => {
  await worker.stop()
  await world.close()
  await postgres.close()
})

/** Sets faults for what is done, and none after it. */
async function under<T>(
  faults: Parameters<World['sandbox']['control']['setFaults']>[0]['faults'],
  work: () => Promise<T>,
) {
  world.sandbox.control.setFaults({ faults })
  try {
    return await work()
  } finally {
    world.sandbox.control.setFaults({ faults: [] })
  }
}

describe('a fetch of documents', () => {
  test(
    'brings each id of a column once, lists those that do not exist, and is proven while requests fail',
    { tags: ['long'] },
    async () => {
      const ids = idsOf(world, 'creditnotes')
      const cells = [...ids, '999001', ids[0], '', '999002'].map((id, at) => `${at};${id ?? ''};x`)
      const file = await putFile(world, ['Folio;Nota de crédito;Glosa', ...cells, ''].join('\r\n'))
      const input = { documents: 'creditnotes', file, idColumn: 'nota de crédito' } as const
      const client = await connectTemporal()
      const faults = [
        { kind: 'reset', rate: 0.01 },
        { kind: 'error', rate: 0.01 },
        { kind: 'notFound', html: true, rate: 0.01 },
      ] as const
      const report = await under(faults, async () => (await startFetch({ client, world, input })).result())

      expect(report).toMatchObject({ verdict: 'proven', missing: { count: 2, first: ['999001', '999002'] } })
      expect(report.summary).toContain('2 creditnotes do not exist: 999001, 999002')
      const folder = folderOf(report, 'creditnotes')
      expect(await verifyExport(folder)).toMatchObject({ problems: [] })
      const rows = await rowsIn(folder, 'creditnotes.csv')
      expect(rows.map(({ id }) => id)).toEqual(ids)
      const lines = await rowsIn(folder, 'creditnote_lines.csv')
      expect(lines).toHaveLength(ids.length)
      const truth = world.sandbox.control.get({ resource: 'creditnotes', id: 501 }) as { invoice: string }
      expect(rows[0]).toMatchObject({ id: '501', invoice: truth.invoice })
      expect(report.missing?.file).toBe(join(folder, 'missing.csv'))
      expect(await readFile(join(folder, 'missing.csv'), 'utf8')).toBe('id\n999001\n999002\n')
      const manifest = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8')) as object
      expect(manifest).toMatchObject({
        mode: 'byId',
        verdict: 'proven',
        asked: 302,
        missing: { rows: 2, first: ['999001', '999002'], files: [{ path: 'missing.csv', rows: 2 }] },
        completeThrough: null,
        notes: ['1 id was given more than once; each is requested once.', '1 row without an id was skipped.'],
      })
      // It says nothing of all credit notes, so nothing points to it as if it did.
      expect(await readdir(join(folder, '..'))).toEqual([
        expect.stringMatching(new RegExp(`Z-${report.run}$`)),
      ])
    },
  )

  test('leaves no ids of a file in the history of its workflow, but for the first that do not exist', async () => {
    const client = await connectTemporal()
    const ids = Array.from({ length: 25 }, (_, at) => `nobody_${at + 10}`)
    const file = await putFile(world, ['id', ...ids, ''].join('\n'))
    const run = await startFetch({ client, world, input: { documents: 'cancellations', file } })
    expect(await run.result()).toMatchObject({ missing: { count: 25 } })
    const history = await historyOf(run)
    expect(history).toContain(ids[0])
    expect(history).not.toContain(ids.at(-1))
  })

  test('lies in every destination, and in warehouses beside what was fetched before', async () => {
    const client = await connectTemporal()
    const ids = idsOf(world, 'cancellations')
    const fetch = async (some: string[]) => {
      const to: FetchInput['to'] = ['duckdb', 'postgres', 'parquet']
      const input = { documents: 'cancellations' as const, ids: some, to }
      return (await startFetch({ client, world, input })).result()
    }
    const first = await fetch([...ids.slice(0, 30), '7'])
    const second = await fetch(ids.slice(25))
    expect([first.verdict, second.verdict]).toEqual(['proven', 'proven'])
    expect(first.missing).toMatchObject({ count: 1, first: ['7'] })
    expect(await readFile(first.missing?.file ?? '', 'utf8')).toBe('id\n7\n')
    const database = join(world.dataDir, 'warehouse.duckdb')
    expect(
      await askDuckDb(database, 'select count(*) as n, count(_deleted_at) as gone from cancellations'),
    ).toEqual([{ n: '40', gone: '0' }])
    const proofs = `select mode, verdict, rows, marks_deletes, json_extract_string(manifest, '$.missing.first[0]') as missing
      from _exports order by read_at`
    expect(await askDuckDb(database, proofs)).toMatchObject([
      { mode: 'byId', verdict: 'proven', rows: '30', marks_deletes: 'false', missing: '7' },
      { mode: 'byId', verdict: 'proven', rows: '15', marks_deletes: 'false', missing: null },
    ])
  })

  test('is not proven where the service refuses an id, and says so, with the others published', async () => {
    const client = await connectTemporal()
    const input = { documents: 'creditnotes', ids: ['501', '502', '503'] } as const
    const refusal = { kind: 'refuse', ids: ['502'], answer: { detail: 'Archived.' } } as const
    const report = await under([refusal], async () =>
      (await startFetch({ client, world, input: { ...input, ids: [...input.ids] } })).result(),
    )
    expect(report).toMatchObject({ verdict: 'unproven', exports: [{ records: 2 }] })
    expect(report.summary).toMatch(/502 could not be read: .*Archived/)
    const rejected = await readFile(join(folderOf(report, 'creditnotes'), 'rejected.jsonl'), 'utf8')
    expect(JSON.parse(rejected)).toMatchObject({ record: { id: '502' } })
  })

  test('a fetch sends no more requests per second than its input allows', async () => {
    const client = await connectTemporal()
    const ids = idsOf(world, 'creditnotes').slice(0, 12)
    const input = { documents: 'creditnotes' as const, ids, requestsPerSecond: 5 }
    const from = asked(world)
    const began = performance.now()
    await (await startFetch({ client, world, input })).result()
    // One more than the ids: the look before it begins.
    expect(asked(world) - from).toBe(13)
    expect(performance.now() - began).toBeGreaterThan((11 / 5) * 1000)
  })
})
