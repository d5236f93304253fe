import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { listResources } from '../../../core/billing/resources/lists.ts'
import { toTables } from '../../../core/tables/privacy.ts'
import { askDuckDb } from '../../core/destinations/duckdb-file.ts'
import { askPostgres, startPostgres } from '../destinations/postgres-server.ts'
import { asTexts } from '../../core/destinations/warehouse-rows.ts'
import { comparable, keyOf, rowsOfService, type Cells } from './service-rows.ts'
import { asked, connectTemporal, createWorld, startRun, startTestWorker } from './world.ts'

const tables = toTables(listResources.subscriptions)
const rounds = 3

/** Late by less than the lookback, which is there for it. */
const lateBySeconds = 2
const between = { deletes: 3, inserts: 8, updates: 20, lateCommits: 2, lateBySeconds }
const everyRequest = { updates: 2, deletes: 1, inserts: 1, lateCommits: 1 }

describe('a warehouse that is kept up with the service', () => {
  test(
    `equals it field by field after ${rounds + 1} incremental exports and a full one, under drift`,
    { tags: ['long'] },
    async () => {
      const server = await startPostgres()
      onTestFinished(() => server.close())
      const url = await server.createDatabase()
      const seed = 7
      const world = await createWorld({
        seed,
        counts: { subscriptions: 600 },
        drift: { subscriptions: { perRequest: everyRequest, lateBySeconds } },
      })
      await startTestWorker(world, { BILLING_READ_LAG_SECONDS: '1', WAREHOUSE_URL: url })
      const client = await connectTemporal()
      const { control } = world.sandbox
      const export_ = async (mode: 'full' | 'incremental') => {
        const input = {
          resources: ['subscriptions' as const],
          to: ['duckdb' as const, 'postgres' as const],
          mode,
          maxDeletes: 'all' as const,
          lookbackSeconds: 5,
        }
        expect(await (await startRun({ client, world, input })).result(), `seed ${seed}`).toMatchObject({
          verdict: 'proven',
        })
      }
      const file = join(world.dataDir, 'warehouse.duckdb')
      const held = async (ask: (sql: string) => ReturnType<typeof askDuckDb>, schema: string) => {
        const found = new Map<string, Map<string, Cells>>()
        for (const table of tables) {
          const rows = (await ask(
            `select ${asTexts(table)} from ${schema}.${table.name} where _deleted_at is null`,
          )) as Cells[]
          for (const row of rows)
            for (const column of table.columns)
              row[column.name] = comparable(column, row[column.name] ?? null)
          found.set(table.name, new Map(rows.map((row) => [keyOf(table, row), row])))
        }
        return found
      }
      const warehouses = () =>
        Promise.all([
          held((sql) => askDuckDb(file, sql), 'main'),
          held((sql) => askPostgres(url, sql), 'billing'),
        ])

      for (let round = 0; round < rounds; round += 1) {
        await export_('incremental')
        control.drift({ resource: 'subscriptions', ...between })
      }
      control.freeze()
      await export_('incremental')
      const truth = rowsOfService(world, tables)
      for (const { size } of truth.values()) expect(size).toBeGreaterThan(50)
      // All that is there is as it is in the service; what is gone only a full read can tell.
      for (const warehouse of await warehouses())
        for (const [name, rows] of truth)
          for (const [key, row] of rows) expect(warehouse.get(name)?.get(key), `${name} ${key}`).toEqual(row)
      // Records come back as they were: their `updated` does not tell.
      control.drift({ resource: 'subscriptions', restores: 10 })
      // What was created or deleted this second is vouched for only after the read lag.
      const changedAt = Date.now()
      while (Date.now() < changedAt + 3_000) await new Promise((resolve) => setTimeout(resolve, 50))
      await export_('full')
      for (const warehouse of await warehouses()) expect(warehouse).toEqual(rowsOfService(world, tables))
    },
  )
})

test('an export into a warehouse with a read from the future is refused before a list is read', async () => {
  const world = await createWorld({ counts: { plans: 3 } })
  await startTestWorker(world)
  const client = await connectTemporal()
  const export_ = async () =>
    (await startRun({ client, world, input: { resources: ['plans'], to: ['duckdb'] } })).result()
  const { run } = await export_()
  const file = join(world.dataDir, 'warehouse.duckdb')
  // As a worker whose clock was ahead leaves it.
  await askDuckDb(
    file,
    `update _exports set manifest = json_merge_patch(manifest, '{"startedAt": "2099-01-01T00:00:00.000Z"}')`,
  )
  const before = asked(world)
  await expect(export_()).rejects.toMatchObject({
    cause: {
      type: 'OlderReadError',
      message: expect.stringContaining(
        `a read of plans from the future: the run ${run} began to read at 2099-01-01T00:00:00.000Z`,
      ),
    },
  })
  expect(asked(world)).toBe(before)
})
