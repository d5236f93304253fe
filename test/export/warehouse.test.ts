import { DuckDBInstance } from '@duckdb/node-api'
import { join } from 'node:path'
import { Client as Postgres } from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startPostgres } from '../destinations/postgres-server.ts'
import { connectTemporal, createWorld, startRun, startTestWorker, type World } from './world.ts'

type Row = Record<string, string | null>

/** What the service stores, as the texts a warehouse should hold. */
const truthOf = (world: World): Map<string, Row> =>
  new Map(
    (world.sandbox.control.ids({ resource: 'subscriptions' }) as string[]).map((id) => {
      const { customer, status, note, next_billing } = world.sandbox.control.get({
        resource: 'subscriptions',
        id,
      }) as Row
      return [id, { id, customer, status, note, next_billing } as Row]
    }),
  )

const query = `select id, customer, status, note, cast(next_billing as varchar) as next_billing from`
const there = 'where _deleted_at is null'

async function inDuckDb(dataDir: string): Promise<Map<string, Row>> {
  const instance = await DuckDBInstance.create(join(dataDir, 'warehouse.duckdb'), {
    access_mode: 'READ_ONLY',
  })
  const connection = await instance.connect()
  try {
    const rows = (
      await connection.runAndReadAll(`${query} subscriptions ${there}`)
    ).getRowObjectsJson() as Row[]
    return new Map(rows.map((row) => [row['id'] ?? '', row]))
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

async function inPostgres(url: string): Promise<Map<string, Row>> {
  const client = new Postgres({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<Row>(`${query} billing.subscriptions ${there}`)
  await client.end()
  return new Map(rows.map((row) => [row['id'] ?? '', row]))
}

describe('a warehouse that is kept up with the service', () => {
  test('equals it field by field after incremental exports and a full one, under drift', async () => {
    const server = await startPostgres()
    onTestFinished(() => server.close())
    const url = await server.createDatabase()
    const world = await createWorld({ counts: { subscriptions: 600 } })
    await startTestWorker(world, { BILLING_READ_LAG_SECONDS: '1', WAREHOUSE_URL: url })
    const client = await connectTemporal()
    const { control } = world.sandbox
    const to = ['duckdb' as const, 'postgres' as const]
    const export_ = async (mode: 'full' | 'incremental') => {
      const run = await startRun({
        client,
        world,
        input: { resources: ['subscriptions'], to, mode, maxDeletes: 'all' },
      })
      expect(await run.result()).toMatchObject({ verdict: 'proven' })
    }
    for (let round = 0; round < 4; round += 1) {
      await export_('incremental')
      control.drift({
        resource: 'subscriptions',
        deletes: 5,
        inserts: 8,
        updates: 20,
        restores: 2,
        lateCommits: 2,
      })
    }
    // What was created or deleted this second is vouched for only after the read lag.
    const changedAt = Date.now()
    while (Date.now() < changedAt + 3_000) await new Promise((resolve) => setTimeout(resolve, 50))
    await export_('full')
    const truth = truthOf(world)
    expect(await inDuckDb(world.dataDir)).toEqual(truth)
    expect(await inPostgres(url)).toEqual(truth)
  })
})
