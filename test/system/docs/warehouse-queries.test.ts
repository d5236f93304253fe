import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client, Connection } from '@temporalio/client'
import { Big } from 'big.js'
import { Client as Postgres } from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import type { ExportInput } from '../../../core/exports/input.ts'
import { askDuckDb } from '../../core/destinations/duckdb-file.ts'
import { startPostgres } from '../destinations/postgres-server.ts'
import { startFetch } from '../fetch/world.ts'
import { openTestWorker, openWorld, startRun, type World } from '../export/world.ts'

const read = (path: string) => readFileSync(new URL(`../../../docs/${path}`, import.meta.url), 'utf8')

/** The queries of the page that are promised to run, with the words after `sql` and the sentence before them. */
const queries = [
  ...read('exports.md').matchAll(/(?<about>[^\n]*)\n\n```sql (?<on>[^\n]*)\n(?<sql>.*?)\n```/gs),
]
  .map(({ groups }) => ({
    about: groups?.['about'] ?? '',
    on: (groups?.['on'] ?? '').split(' '),
    sql: groups?.['sql'] ?? '',
  }))
  .filter(({ on }) => on.includes('duckdb'))

let world: World
let url: string
let close: () => Promise<void>

// One warehouse of each kind: a whole export, one after three deletes, and one that is not proven.
beforeAll(async () => {
  const server = await startPostgres()
  url = await server.createDatabase()
  world = await openWorld({
    counts: { customers: 100, subscriptions: 200, plans: 30, retentions: 150 },
    needsAttention: 0.4,
  })
  const worker = await openTestWorker(world, { WAREHOUSE_URL: url })
  const connection = await Connection.connect({ address: inject('temporalAddress') })
  close = async () => {
    await connection.close()
    await worker.stop()
    await world.close()
    await server.close()
  }
  const client = new Client({ connection })
  const export_ = async (input: ExportInput) => (await startRun({ client, world, input })).result()
  await export_({ to: ['csv', 'parquet', 'duckdb', 'postgres'] })
  const { control } = world.sandbox
  for (const id of control.ids({ resource: 'subscriptions' }).slice(3, 6))
    control.delete({ resource: 'subscriptions', id })
  const to = ['duckdb' as const, 'postgres' as const]
  await export_({ resources: ['subscriptions'], to })
  await export_({ resources: ['plans'], maxPages: 1, to })
  for (const documents of ['creditnotes', 'cancellations'] as const) {
    const ids = control.ids({ resource: documents }).map(String)
    await (await startFetch({ client, world, input: { documents, ids, to } })).result()
  }
}, 90_000)
afterAll(() => close())

const inDuckDb = (sql: string) =>
  askDuckDb(join(world.dataDir, 'warehouse.duckdb'), `set timezone = 'UTC'; ${sql}`)

/** Every value as the server writes it. */
async function inPostgres(sql: string) {
  const client = new Postgres({
    connectionString: url,
    options: '-c search_path=billing -c timezone=UTC',
    types: { getTypeParser: () => (value: unknown) => value },
  })
  await client.connect()
  try {
    return (await client.query<Record<string, string | null>>(sql)).rows
  } finally {
    await client.end()
  }
}

/** Numbers as the same text, whatever the scale that a warehouse shows. */
const byValue = (rows: readonly Record<string, string | null>[] | undefined) =>
  (rows ?? []).map((row) =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [
        name,
        value !== null && /^-?\d+(\.\d+)?$/.test(value) ? new Big(value).toFixed() : value,
      ]),
    ),
  )

describe('docs/exports.md', () => {
  test('has queries that are promised to run', () => expect(queries.length).toBeGreaterThan(5))

  test.each(queries.map((query) => [query.about, query] as const))('%s', async (_, { on, sql }) => {
    const own = sql.replaceAll('data/exports', join(world.dataDir, 'exports'))
    const rows = await inDuckDb(own)
    expect(rows?.length).toBeGreaterThan(0)
    if (on.includes('postgres')) expect(byValue(await inPostgres(own))).toEqual(byValue(rows))
  })

  test('has a dbt model that gives the same in both warehouses', async () => {
    const model = read('dbt/models/subscription_revenue.sql')
      .replace(/\{\{ config\(.*?\) \}\}/, '')
      .replaceAll(/\{\{ source\('billing', '(\w+)'\) \}\}/g, '$1')
    const ordered = `select * from (${model}) model order by currency, frequency, plan`
    const rows = await inDuckDb(ordered)
    expect(rows?.length).toBeGreaterThan(0)
    expect(byValue(await inPostgres(ordered))).toEqual(byValue(rows))
  })

  test('keeps its word that amounts can be multiplied, exactly, also those that no double holds', async () => {
    const products = `select id, total * 19.5 * 0.01 as tax from live_retentions where total is not null order by id`
    const rows = byValue(await inPostgres(products))
    expect(rows.length).toBeGreaterThan(100)
    expect(byValue(await inDuckDb(products))).toEqual(rows)
    const percents = 'select count(amount * tax_percent / 100) as taxed from live_retention_lines'
    expect(await inDuckDb(percents)).toEqual(await inPostgres(percents))
    const types = `select distinct data_type from information_schema.columns
      where table_name in ('live_retentions', 'live_retention_lines', 'live_plans') and data_type like 'DECIMAL%'`
    expect(await inDuckDb(types)).toEqual([{ data_type: 'DECIMAL(30,8)' }])
  })

  test('counts what the service holds: subscriptions that need attention, by reason', async () => {
    const { sql } = queries.find(({ sql }) => sql.includes('needs_attention_reason as reason'))!
    const { control } = world.sandbox
    const truth: Record<string, number> = {}
    for (const id of control.ids({ resource: 'subscriptions' })) {
      const { status, needs_attention_reason: reason } = control.get({
        resource: 'subscriptions',
        id,
      }) as Record<string, string>
      if (status === 'needs_attention') truth[reason ?? ''] = (truth[reason ?? ''] ?? 0) + 1
    }
    const rows = (await inDuckDb(sql)) ?? []
    expect(Object.fromEntries(rows.map((row) => [row['reason'], Number(row['subscriptions'])]))).toEqual(
      truth,
    )
  })

  test('names in dbt/sources.yml the tables and columns that there are, all of them', async () => {
    const columnsIn = (schema: string) =>
      `select table_name, column_name from information_schema.columns where table_schema = '${schema}'
        and table_name not in ('_warehouse', '_columns', '_held', '_rejected')`
    const declared = toColumns(read('dbt/sources.yml'))
    for (const rows of [await inDuckDb(columnsIn('main')), await inPostgres(columnsIn('billing'))]) {
      const there = (rows ?? []).map((row) => `${row['table_name']}.${row['column_name']}`)
      expect([...declared].filter((name) => !there.includes(name))).toEqual([])
      const unsaid = there.filter((name) => !declared.has(name) && !name.startsWith('_exports.'))
      expect(unsaid).toEqual([])
    }
  })
})

/** `table.column` of each column in a file of sources; a source's `identifier` is its table. */
function toColumns(sources: string): Set<string> {
  const names = new Set<string>()
  for (const source of sources.split(/^ {6}- name: /m).slice(1)) {
    const table = /^ {8}identifier: (\w+)$/m.exec(source)?.[1] ?? /^\w+/.exec(source)?.[0]
    for (const [, column] of source.matchAll(/^ {10}- name: (\w+)$/gm)) names.add(`${table}.${column}`)
  }
  return names
}
