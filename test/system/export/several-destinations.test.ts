import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { type ExportReport } from '../../../core/exports/report.ts'
import type { ExportInput } from '../../../core/exports/input.ts'
import { askDuckDb } from '../../core/destinations/duckdb-file.ts'
import { askPostgres, startPostgres, type Postgres } from '../destinations/postgres-server.ts'
import {
  asked,
  connectTemporal,
  createWorld,
  openTestWorker,
  runExport,
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
  return runExport(world, { resources, ...input })
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
    expect(summary).toMatch(/^0 of 1 proven complete, 12 records; plans to postgres failed: /)
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
    const before = asked(world)
    const refused = await callCommand(world, words)
    expect(asked(world)).toBe(before)
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringMatching(
        /has plans with all values as they are, and this export has them without plans.name/,
      ),
    ])
    // Temporal's list of runs follows a little later.
    const listed = async () =>
      JSON.parse((await callCommand(world, ['run', 'list', '--json'])).stdout) as unknown
    await expect.poll(listed).toMatchObject({
      runs: [{ verdict: 'failed', needsPerson: false }, { verdict: 'proven' }],
    })
    const { run } = await export_(world, { exclude: ['plans.name'] })
    const published = await callCommand(world, ['run', 'publish', run, '--to', 'duckdb'])
    expect([published.code, published.stderr]).toEqual([1, expect.stringMatching(/without plans.name/)])
    expect(await names()).toEqual([{ n: '20' }])
  })
})

test('a PostgreSQL that is away when an incremental export begins is waited for, and gets the changes alone', async () => {
  const url = await postgres.createDatabase()
  const world = await createWorld({ counts: { plans: 20 } })
  await startTestWorker(world, { BILLING_READ_LAG_SECONDS: '0', WAREHOUSE_URL: url })
  const client = await connectTemporal()
  const input: ExportInput = { resources, mode: 'incremental', to: ['postgres'] }
  await runExport(world, input)
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
