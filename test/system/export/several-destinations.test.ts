import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import type { ExportReport } from '../../../core/exports/report.ts'
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
      { destination: 'csv', verdict: 'proven', records: 12 },
      {
        resource: 'plans',
        destination: 'postgres',
        verdict: 'failed',
        reasons: [expect.stringContaining('"nowhere" does not exist')],
      },
    ])
    expect(summary).toMatch(/^1 of 2 proven complete, 12 records; plans to postgres failed: /)
    const told = await callCommand(world, ['report', run])
    expect(told.stdout).toContain(`connector publish ${run} --to postgres`)
    // What a destination still lacks is kept for it.
    const note = JSON.parse(
      await readFile(join(world.dataDir, 'parts', run, 'plans', 'published.json'), 'utf8'),
    ) as object
    expect(note).toMatchObject({ destinations: ['csv'], asked: ['postgres', 'csv'] })

    const again = await callCommand(world, ['publish', run, '--to', 'postgres,duckdb', '--json'])
    expect(again.code).toBe(1)
    expect(JSON.parse(again.stdout)).toMatchObject({
      exports: [
        { destination: 'duckdb', verdict: 'proven' },
        { destination: 'postgres', verdict: 'failed', reasons: [expect.stringContaining('nowhere')] },
      ],
    })
    expect(
      await askDuckDb(join(world.dataDir, 'warehouse.duckdb'), 'select count(*) as n from plans'),
    ).toEqual([{ n: '12' }])
    // Where nothing at all came through, the run itself has failed.
    const none = await callCommand(world, ['publish', run, '--to', 'postgres'])
    expect([none.code, none.stdout]).toEqual([1, ''])
    expect(none.stderr).toMatch(/error: [^\n]*plans failed: [^\n]*"nowhere" does not exist/)
  })
})

test('publish takes --schema, and with --detach returns the run', async () => {
  const url = await postgres.createDatabase()
  const world = await createWorld({ counts: { plans: 4 } })
  await startTestWorker(world, { WAREHOUSE_URL: url })
  const { run } = await export_(world, {})
  const words = ['publish', run, '--to', 'postgres', '--schema', 'elsewhere', '--detach', '--json']
  const { code, stdout } = await callCommand(world, words)
  expect([code, JSON.parse(stdout)]).toEqual([0, { run: `publish-${run}-to-postgres-schema-elsewhere` }])
  const client = await connectTemporal()
  await client.workflow.getHandle(`publish-${run}-to-postgres-schema-elsewhere`).result()
  expect(await askPostgres(url, 'select count(*) as n from elsewhere.plans')).toEqual([{ n: '4' }])
  expect(await askPostgres(url, 'select 1 from billing.plans')).toBeUndefined()
  const both = await callCommand(world, ['publish', run, '--local', '--detach'])
  expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('connector up')])
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
      const again = await callCommand(world, ['publish', run])
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

  test('where the warehouse has had other columns left out since', async () => {
    const world = await createWorld({ counts: { plans: 20 } })
    await startTestWorker(world, { BILLING_READ_LAG_SECONDS: '0' })
    const file = join(world.dataDir, 'warehouse.duckdb')
    const names = () => askDuckDb(file, 'select count(name) as n from plans')
    const to = ['duckdb' as const]
    await export_(world, { to })
    await export_(world, { to, exclude: ['plans.name'] })
    expect(await names()).toEqual([{ n: '0' }])
    await export_(world, { ...incremental, to })
    expect(await names()).toEqual([{ n: '20' }])
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
      if (one === undefined || !('published' in one)) throw new Error(report.summary)
      const { where } = one.published[0]!
      records.push(one.published[0]!.records)
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
    const { raw } = await client.workflow.getHandle(`${run.workflowId}/plans`).describe()
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
