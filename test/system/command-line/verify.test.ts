import { realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createCsvDestination } from '../../../core/destinations/files/csv.ts'
import type { Publication } from '../../../core/destinations/destination.ts'
import { createDuckDbDestination } from '../../../core/destinations/duckdb/duckdb.ts'
import { createParquetDestination } from '../../../core/destinations/files/parquet.ts'
import { createPostgresDestination } from '../../../core/destinations/postgres/postgres.ts'
import { askDuckDb } from '../../core/destinations/duckdb-file.ts'
import { askPostgres, password, startPostgres, type Postgres } from '../destinations/postgres-server.ts'
import { createWorkplace, facts, type Workplace } from '../../core/destinations/publication.ts'
import { callCommand } from './call-command.ts'

const records = [
  '{"id":"a","name":"Ana","aggregations":{"sales":1500.50},"contacts":[{"id":"1","phone":"007"}]}',
  '{"id":"b","name":""}',
]

let postgres: Postgres
let workplace: Workplace
let env: Record<string, string>
beforeAll(async () => {
  postgres = await startPostgres()
})
afterAll(() => postgres.close())

/** In an environment without the service's address or token. */
const verify = (...words: string[]) => callCommand({ env }, ['verify', ...words])

/** The exit code and the one sentence of a refusal. */
async function failureOf(...words: string[]) {
  const { code, stdout, stderr } = await verify(...words)
  expect([stdout, stderr]).toEqual(['', expect.stringMatching(/^error: [^\n]+\n$/)])
  return [code, stderr] as const
}

/** A warehouse that an export was published to, and a way to change what is in it. */
const warehouses = {
  duckdb: () => ({
    destination: createDuckDbDestination({ folder: workplace.folder }),
    ask: (sql: string) => askDuckDb(join(workplace.folder, 'warehouse.duckdb'), sql),
  }),
  postgres: () => ({
    destination: createPostgresDestination({ url: env['WAREHOUSE_URL']! }),
    ask: (sql: string) => askPostgres(env['WAREHOUSE_URL']!, `set search_path = billing; ${sql}`),
  }),
}

beforeEach(async () => {
  workplace = await createWorkplace()
  env = { CONNECTOR_DATA_DIR: workplace.folder, WAREHOUSE_URL: await postgres.createDatabase() }
  return () => workplace.close()
})

const toPublication = (more: Partial<Publication> = {}) =>
  workplace.toPublication('customers', [records], more)
const toCsv = async (publication: Publication) => (await createCsvDestination().publish(publication)).location

describe.each(['duckdb', 'postgres'] as const)('verify --against %s', (name) => {
  test('ends with 0 and the rows compared where the warehouse holds the export', async () => {
    const publication = await toPublication()
    await warehouses[name]().destination.publish(publication)
    const folder = await toCsv(publication)
    const { code, stdout } = await verify(folder, '--against', name)
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(
        /has the same rows \(customers 2 rows compared; customer_contacts 1 row compared\)/,
      ),
    ])
  })

  test('ends with 1 and one sentence for each difference', async () => {
    const publication = await toPublication()
    const { destination, ask } = warehouses[name]()
    await destination.publish(publication)
    const folder = await toCsv(publication)
    await ask(`update customers set name = 'Ann' where id = 'a'`)
    await ask(`update customer_contacts set phone = '7'`)
    const changed = await verify(folder, '--against', name, '--json')
    expect(changed.code).toBe(1)
    expect(JSON.parse(changed.stdout)).toMatchObject({
      warehouse: name,
      tables: [
        { name: 'customers', compared: 2, newer: 0 },
        { name: 'customer_contacts', compared: 1, newer: 0 },
      ],
      problems: [
        expect.stringMatching(
          /^customers(\.name)? does not hold what was exported( in name of 1 row: a)?\.$/,
        ),
        expect.stringMatching(
          /^customer_contacts(\.phone)? does not hold what was exported( in phone of 1 row: a,1)?\.$/,
        ),
      ],
    })
    await ask(`delete from customers where id = 'b'`)
    await ask(`delete from customer_contacts`)
    const missing = await verify(folder, '--against', name)
    expect([missing.code, missing.stdout.split('\n')]).toEqual([
      1,
      expect.arrayContaining([
        'customers lacks 1 row of the export: b.',
        'customer_contacts lacks 1 row of the export: a,1.',
      ]),
    ])
  })

  test('refuses what cannot be compared, and ends with 2', async () => {
    const publication = await toPublication()
    const { destination, ask } = warehouses[name]()
    await destination.publish(publication)
    const { location: parquet } = await createParquetDestination().publish(publication)
    expect(await failureOf(parquet, '--against', name)).toEqual([
      2,
      expect.stringContaining('holds no plain CSV files; a warehouse is compared with an export to csv.'),
    ])
    const folder = await toCsv(publication)
    await ask(`update _warehouse set workspace = 'acc_other'`)
    expect(await failureOf(folder, '--against', name)).toEqual([
      2,
      expect.stringContaining('is of workspace acc_other (live), the export of acc_1 (live).'),
    ])
  })

  test('ends with 3 where what it holds is the same, and unproven', async () => {
    const unproven = { ...facts, verdict: 'unproven' as const, reasons: ['The order was ignored.'] }
    const publication = await toPublication({ facts: unproven })
    await warehouses[name]().destination.publish(publication)
    const { code, stdout } = await verify(await toCsv(publication), '--against', name)
    expect([code, stdout]).toEqual([3, expect.stringContaining('has the same rows')])
  })

  test('ends with 3 where later runs have written every row again: nothing was compared', async () => {
    const publication = await toPublication()
    const { destination } = warehouses[name]()
    await destination.publish(publication)
    const startedAt = new Date(Date.parse(facts.startedAt) + 1000).toISOString()
    await destination.publish(await toPublication({ run: 'later', facts: { ...facts, startedAt } }))
    const { code, stdout } = await verify(await toCsv(publication), '--against', name)
    expect([code, stdout]).toEqual([
      3,
      expect.stringContaining('has no row of it left to compare: later runs have written them again'),
    ])
  })

  test('takes a row of an older run for no proof of this one', async () => {
    await warehouses[name]().destination.publish(await toPublication({ run: 'older' }))
    const { code, stdout } = await verify(await toCsv(await toPublication()), '--against', name)
    expect([code, stdout]).toEqual([
      1,
      expect.stringMatching(/has no export of customers by the run export-/),
    ])
  })

  test('says which column someone took away', async () => {
    const publication = await toPublication()
    const { destination, ask } = warehouses[name]()
    await destination.publish(publication)
    await ask('drop view live_customers')
    await ask('alter table customers drop column name')
    const { code, stdout } = await verify(await toCsv(publication), '--against', name)
    expect([code, stdout]).toEqual([1, 'customers has no column name.\n'])
  })
})

test('finds a row that DuckDB, which has no keys, holds twice', async () => {
  const publication = await toPublication()
  const { destination, ask } = warehouses.duckdb()
  await destination.publish(publication)
  const folder = await toCsv(publication)
  for (const table of ['customers', 'customer_contacts'])
    await ask(`insert into ${table} select * from ${table}`)
  const { code, stdout } = await verify(folder, '--against', 'duckdb')
  expect([code, stdout.trim().split('\n')]).toEqual([
    1,
    [
      'customers has 2 rows of the export more than once: a; b.',
      'customer_contacts has 1 row of the export more than once: a,1.',
    ],
  ])
})

test('reads the export that a link leads to at first, because it may move meanwhile', async () => {
  const publication = await toPublication()
  const folder = await toCsv(publication)
  await warehouses.duckdb().destination.publish(publication)
  const latest = join(dirname(folder), 'latest')
  for (const words of [[], ['--against', 'duckdb']]) {
    const { stdout } = await verify(latest, ...words, '--json')
    expect(JSON.parse(stdout)).toMatchObject({ folder: await realpath(folder) })
  }
})

test.each([
  ['csv', false, [], '.\n'],
  [
    'csv',
    true,
    ['rows', 'totals'],
    'whether its rows are those that were read, and whether they add up to its totals.',
  ],
  [
    'parquet',
    false,
    ['rows'],
    'Not checked, because it is not plain CSV: whether its rows are those that were read.',
  ],
] as const)('says what it does not check of %s (for Excel: %s)', async (name, forExcel, unchecked, words) => {
  const destination = name === 'csv' ? createCsvDestination() : createParquetDestination()
  const publication = { ...(await toPublication({ forExcel, mode: 'byId', resource: 'creditnotes' })) }
  const { location } = await destination.publish(publication)
  const { code, stdout } = await verify(location)
  expect([code, stdout]).toEqual([0, expect.stringContaining(words)])
  expect(JSON.parse((await verify(location, '--json')).stdout)).toMatchObject({ unchecked, problems: [] })
})

describe('verify --against', () => {
  test('ends with 1 and does not ask the warehouse where the files themselves are not whole', async () => {
    env = { CONNECTOR_DATA_DIR: workplace.folder, WAREHOUSE_URL: 'postgres://nobody@127.0.0.1:1/none' }
    const { code, stdout } = await verify(join(workplace.folder, 'none'), '--against', 'postgres')
    expect([code, stdout]).toEqual([
      1,
      expect.stringContaining('has no manifest.json: it is not the folder of an export'),
    ])
  })

  test('refuses a warehouse that is not there, in a sentence, and makes none', async () => {
    const folder = await toCsv(await toPublication())
    expect(await failureOf(folder, '--against', 'duckdb')).toEqual([
      2,
      expect.stringContaining(`There is no warehouse ${join(workplace.folder, 'warehouse.duckdb')}`),
    ])
    expect(await askDuckDb(join(workplace.folder, 'warehouse.duckdb'), 'select 1')).toBeUndefined()
    env = { ...env, WAREHOUSE_URL: postgres.toUrl('postgres', 'postgres', 'wrong') }
    const [code, says] = await failureOf(folder, '--against', 'postgres')
    expect([code, says]).toEqual([2, expect.stringContaining('Nothing was compared')])
    for (const secret of ['wrong', password]) expect(says.includes(secret)).toBe(false)
    env = { CONNECTOR_DATA_DIR: workplace.folder }
    expect(await failureOf(folder, '--against', 'postgres')).toEqual([
      2,
      expect.stringContaining('WAREHOUSE_URL is not set'),
    ])
  })

  test.each([
    [['--against', 'mysql'], 'Choose from duckdb, postgres'],
    [['--schema', 'billing'], 'for --against postgres'],
    [['--against', 'duckdb', '--schema', 'billing'], 'duckdb has one schema'],
  ])('refuses %j', async (words, says) => {
    expect(await failureOf(workplace.folder, ...words)).toEqual([2, expect.stringContaining(says)])
  })

  test('checks the schema that --schema names', async () => {
    const publication = await toPublication({ schema: 'mine' })
    await warehouses.postgres().destination.publish(publication)
    const folder = await toCsv(publication)
    expect(await verify(folder, '--against', 'postgres', '--schema', 'mine')).toMatchObject({ code: 0 })
    expect(await verify(folder, '--against', 'postgres')).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^schema billing of .* has no table _warehouse/),
    })
  })
})
