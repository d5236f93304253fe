import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { type ExportReport, isPublished } from '../../../core/exports/report.ts'
import type { ExportInput } from '../../../core/exports/input.ts'
import { askDuckDb } from '../../core/destinations/duckdb-file.ts'
import { askPostgres, startPostgres, type Postgres } from '../destinations/postgres-server.ts'
import {
  connectTemporal,
  createWorld,
  openTestWorker,
  startRun,
  startTestWorker,
  until,
  type World,
} from './world.ts'

let postgres: Postgres
beforeAll(async () => {
  postgres = await startPostgres()
})
afterAll(() => postgres.close())

const resources = ['plans' as const]

/** Runs an export to its end. */
async function export_(world: World, input: ExportInput): Promise<ExportReport> {
  const client = await connectTemporal()
  return (await startRun({ client, world, input: { resources, ...input } })).result()
}

describe('a destination that fails', () => {
  test('takes nothing from the others: they are published and told, and the command ends with 1', async () => {
    const world = await createWorld({ counts: { plans: 12 } })
    const nowhere = { WAREHOUSE_URL: postgres.toUrl('nowhere') }
    await startTestWorker(world, nowhere)
    const words = ['export', 'plans', '--to', 'postgres,csv', '--json']
    const { code, stdout } = await callCommand(world, words)
    expect(code).toBe(1)
    const { run, summary, exports } = JSON.parse(stdout) as {
      run: string
      summary: string
      exports: { destination: string }[]
    }
    expect(exports).toMatchObject([
      {
        resource: 'plans',
        destination: 'postgres',
        verdict: 'failed',
        reasons: [expect.stringContaining('"nowhere" does not exist')],
      },
      { destination: 'csv', verdict: 'proven', records: 12 },
    ])
    expect(summary).toMatch(/^1 of 2 proven complete, 12 records; plans to postgres failed: /)
    const told = await callCommand(world, ['run', 'report', run])
    expect(told.stdout).toContain(`npx connector run publish ${run} --to postgres`)
    const again = await callCommand(world, ['run', 'publish', run, '--to', 'postgres,duckdb', '--json'])
    expect(again.code).toBe(1)
    expect(JSON.parse(again.stdout)).toMatchObject({
      exports: [
        { destination: 'postgres', verdict: 'failed', reasons: [expect.stringContaining('nowhere')] },
        { destination: 'duckdb', verdict: 'proven' },
      ],
    })
    expect(
      await askDuckDb(join(world.dataDir, 'warehouse.duckdb'), 'select count(*) as n from plans'),
    ).toEqual([{ n: '12' }])
    // Where nothing at all came through, the run itself has failed.
    const none = await callCommand(world, ['run', 'publish', run, '--to', 'postgres'])
    expect([none.code, none.stdout]).toEqual([1, ''])
    expect(none.stderr).toMatch(/error: [^\n]*plans failed: [^\n]*"nowhere" does not exist/)
  })
})

test('two records under one id are unproven in every destination, both in the files, and named', async () => {
  const world = await createWorld({ counts: { customers: 250 } })
  const { control } = world.sandbox
  const [other, id] = [...control.records({ resource: 'customers' })]
    .filter((_, at) => at === 20 || at === 220)
    .map((text) => (JSON.parse(text) as { id: string }).id)
  control.update({ resource: 'customers', id: other!, fields: { id }, touch: false })
  const url = await postgres.createDatabase()
  await startTestWorker(world, { WAREHOUSE_URL: url })
  const to = ['csv', 'parquet', 'duckdb', 'postgres'] as const
  const { exports } = await export_(world, { resources: ['customers'], to: [...to] })
  const reasons = [`the service has more than one record under the same id: ${id}`]
  expect(exports).toMatchObject(to.map((destination) => ({ destination, verdict: 'unproven', reasons })))
  const folder = join(world.dataDir, 'exports', 'customers', 'latest')
  const csv = await readFile(join(folder, 'customers.csv'), 'utf8')
  expect(csv.split('\n').filter((line) => line.startsWith(`${id},`))).toHaveLength(2)
  const count = `select count(*) as n, count(distinct id) as ids from`
  const one = [{ n: '249', ids: '249' }]
  expect(await askDuckDb(join(world.dataDir, 'warehouse.duckdb'), `${count} customers`)).toEqual(one)
  expect(await askPostgres(url, `${count} billing.customers`)).toEqual(one)
  const verified = await callCommand(world, ['verify', folder])
  expect(verified).toMatchObject({ stderr: '', stdout: expect.not.stringContaining('another has too') })
})

test('publish takes --schema, and with --detach returns the run', async () => {
  const url = await postgres.createDatabase()
  const world = await createWorld({ counts: { plans: 4 } })
  await startTestWorker(world, { WAREHOUSE_URL: url })
  const { run } = await export_(world, {})
  const words = ['run', 'publish', run, '--to', 'postgres', '--schema', 'elsewhere', '--detach', '--json']
  const { code, stdout } = await callCommand(world, words)
  expect([code, JSON.parse(stdout)]).toEqual([0, { run: `publish-${run}-to-postgres-schema-elsewhere` }])
  const client = await connectTemporal()
  await client.workflow.getHandle(`publish-${run}-to-postgres-schema-elsewhere`).result()
  expect(await askPostgres(url, 'select count(*) as n from elsewhere.plans')).toEqual([{ n: '4' }])
  expect(await askPostgres(url, 'select 1 from billing.plans')).toBeUndefined()
  const both = await callCommand(world, ['run', 'publish', run, '--local', '--detach'])
  expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('npx connector up')])
})

describe('an incremental export reads the whole list', () => {
  const incremental = { mode: 'incremental', lookbackSeconds: 0 } as const

  test(
    'where another database is named, and continues from where it was when the first one is named again',
    { tags: ['long'] },
    async () => {
      const [first, second] = [await postgres.createDatabase(), await postgres.createDatabase()]
      const world = await createWorld({ counts: { plans: 20 } })
      const modeIn = async (url: string) => {
        const worker = await openTestWorker(world, { WAREHOUSE_URL: url, BILLING_READ_LAG_SECONDS: '0' })
        const { run } = await export_(world, { ...incremental, to: ['postgres'] })
        await worker.stop()
        return (await askPostgres(url, `select mode from billing._exports where run = '${run}'`))?.[0]?.[
          'mode'
        ]
      }
      expect(await modeIn(first)).toBe('full')
      expect(await modeIn(first)).toBe('incremental')
      expect(await modeIn(second)).toBe('full')
      expect(await askPostgres(second, 'select count(*) as n from billing.plans')).toEqual([{ n: '20' }])
      expect(await modeIn(first)).toBe('incremental')
      // The same address, and not the same database any more.
      await askPostgres(first, 'drop schema billing cascade')
      expect(await modeIn(first)).toBe('full')
      expect(await askPostgres(first, 'select count(*) as n from billing.plans')).toEqual([{ n: '20' }])
    },
  )

  test(
    'where the DuckDB file is gone, or an earlier run alone was published to a new one',
    { tags: ['long'] },
    async () => {
      const world = await createWorld({ counts: { plans: 20 } })
      await startTestWorker(world, { BILLING_READ_LAG_SECONDS: '0' })
      const file = join(world.dataDir, 'warehouse.duckdb')
      const next = async () => {
        const { run } = await export_(world, { ...incremental, to: ['duckdb'] })
        const [row] = (await askDuckDb(file, `select mode from _exports where run = '${run}'`)) ?? []
        return { run, mode: row?.['mode'] }
      }
      expect(await next()).toMatchObject({ mode: 'full' })
      const { run, mode } = await next()
      expect(mode).toBe('incremental')
      await rm(file)
      const again = await callCommand(world, ['run', 'publish', run])
      expect([again.code, again.stdout]).toEqual([
        3,
        expect.stringContaining('the warehouse has no proven export of the whole list'),
      ])
      expect(await next()).toMatchObject({ mode: 'full' })
      expect(await askDuckDb(file, 'select count(*) as n from plans')).toEqual([{ n: '20' }])
      await rm(file)
      expect(await next()).toMatchObject({ mode: 'full' })
    },
  )

  test('where somebody has removed rows of a child table', async () => {
    const world = await createWorld({ counts: { customers: 60 } })
    await startTestWorker(world, { BILLING_READ_LAG_SECONDS: '0' })
    const file = join(world.dataDir, 'warehouse.duckdb')
    const ask = async (sql: string) => (await askDuckDb(file, sql))?.[0]
    const contacts = () => ask('select count(*) as n from customer_contacts')
    const input = { ...incremental, resources: ['customers' as const], to: ['duckdb' as const] }
    await export_(world, input)
    const before = await contacts()
    await ask(`delete from customer_contacts where customer_id in (select min(id) from live_customers
      where id in (select customer_id from customer_contacts))`)
    expect(await contacts()).not.toEqual(before)
    expect(await export_(world, { ...input, maxPages: 1 })).toMatchObject({ verdict: 'unproven' })
    const { run, verdict } = await export_(world, input)
    expect(verdict).toBe('proven')
    expect(await ask(`select mode from _exports where run = '${run}'`)).toEqual({ mode: 'full' })
    expect(await contacts()).toEqual(before)
  })
})

describe('a warehouse has one form of its values', () => {
  const to = ['duckdb' as const]

  test('and refuses another before anything is read, and a kept read in another when it is published', async () => {
    const world = await createWorld({ counts: { plans: 20 } })
    await startTestWorker(world)
    await export_(world, { to })
    const names = () =>
      askDuckDb(join(world.dataDir, 'warehouse.duckdb'), 'select count(name) as n from plans')
    const words = ['export', 'plans', '--to', 'duckdb', '--exclude', 'plans.name']
    const refused = await callCommand(world, words)
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringMatching(
        /has plans with all values as they are, and this export has them without plans.name/,
      ),
    ])
    const { run } = await export_(world, { exclude: ['plans.name'] })
    const published = await callCommand(world, ['run', 'publish', run, '--to', 'duckdb'])
    expect([published.code, published.stderr]).toEqual([1, expect.stringMatching(/without plans.name/)])
    expect(await names()).toEqual([{ n: '20' }])
  })

  test('and one key: a night with another is refused, and the next continues from before', async () => {
    const world = await createWorld({ counts: { plans: 20 } })
    const night = async (CONNECTOR_HASH_KEY: string) => {
      const worker = await openTestWorker(world, { CONNECTOR_HASH_KEY, BILLING_READ_LAG_SECONDS: '0' })
      try {
        const { run, verdict } = await export_(world, { to, mode: 'incremental', hash: ['plans.name'] })
        const sql = `select mode from _exports where run = '${run}'`
        return { verdict, ...(await askDuckDb(join(world.dataDir, 'warehouse.duckdb'), sql))?.[0] }
      } finally {
        await worker.stop()
      }
    }
    expect(await night('key a')).toEqual({ verdict: 'proven', mode: 'full' })
    const refused = (await night('key b').catch((error: unknown) => error)) as {
      cause?: { message?: string }
    }
    expect(JSON.stringify(refused)).toContain('hashed with another key')
    expect(await night('key a')).toEqual({ verdict: 'proven', mode: 'incremental' })
  })
})

test(
  'csv every hour and DuckDB every night each continue from their own last export',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ counts: { plans: 20 } })
    await startTestWorker(world, { BILLING_READ_LAG_SECONDS: '0' })
    const modes: string[] = []
    const records: number[] = []
    for (const to of ['csv', 'csv', 'duckdb', 'csv', 'duckdb'] as const) {
      const report = await export_(world, { mode: 'incremental', lookbackSeconds: 0, to: [to] })
      const [one] = report.exports
      if (one === undefined || !isPublished(one)) throw new Error(report.summary)
      const { where } = one
      records.push(one.records)
      const [row] =
        to === 'csv'
          ? [JSON.parse(await readFile(join(where, 'manifest.json'), 'utf8')) as { mode: string }]
          : ((await askDuckDb(where, `select mode from _exports where run = '${report.run}'`)) ?? [])
      modes.push(`${to} ${row?.['mode']}`)
    }
    expect(modes).toEqual([
      'csv full',
      'csv incremental',
      'duckdb full',
      'csv incremental',
      'duckdb incremental',
    ])
    expect(records.filter((count) => count === 20)).toHaveLength(2)
  },
)

test('a PostgreSQL that is away when an incremental export begins is waited for, and gets the changes alone', async () => {
  const url = await postgres.createDatabase()
  const world = await createWorld({ counts: { plans: 20 } })
  await startTestWorker(world, { BILLING_READ_LAG_SECONDS: '0', WAREHOUSE_URL: url })
  const client = await connectTemporal()
  const input: ExportInput = { resources, mode: 'incremental', to: ['postgres'] }
  await (await startRun({ client, world, input })).result()
  postgres.killAll()
  const run = await startRun({ client, world, input })
  const hasFailed = async () => {
    const { raw } = await run.describe()
    return (
      raw.pendingActivities?.some(({ lastFailure }) => lastFailure?.message?.includes("Can't reach")) ?? false
    )
  }
  await until(() => hasFailed().catch(() => false))
  await postgres.restart()
  expect(await run.result()).toMatchObject({ verdict: 'proven' })
  const sql = `select mode from billing._exports where run = '${run.workflowId}'`
  expect(await askPostgres(url, sql)).toEqual([{ mode: 'incremental' }])
})
