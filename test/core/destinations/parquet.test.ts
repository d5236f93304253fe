import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { exportPath } from '../../../core/destinations/files/publish.ts'
import type { Publication } from '../../../core/destinations/destination.ts'
import { createParquetDestination } from '../../../core/destinations/files/parquet.ts'
import { literal } from '../../../core/destinations/layout.ts'
import { writePart } from '../exports/write-part.ts'
import { describeDestination } from './contract.ts'
import { askDuckDb } from './duckdb-file.ts'
import { createWorkplace, noise, start, type Workplace } from './publication.ts'
import { asTexts, byKey, withoutScale } from './warehouse-rows.ts'

const folderOf = (publication: Publication) => join(publication.folder, exportPath(publication, 'parquet'))

describeDestination('parquet', async () => ({
  destination: createParquetDestination(),
  async rows(publication, name) {
    const table = publication.tables.find((table) => table.name === name)!
    const path = join(folderOf(publication), `${name}.parquet`)
    const rows = await askDuckDb(
      ':memory:',
      `select ${asTexts(table)} from read_parquet(${literal(path)}) t order by ${byKey(table)}`,
    )
    return withoutScale(table, rows)
  },
  remove: (publication, table) => rm(join(folderOf(publication), `${table}.parquet`)),
  restores: 'maybe',
  close: async () => {},
}))

describe('an export in Parquet files', () => {
  let workplace: Workplace
  beforeEach(async () => {
    workplace = await createWorkplace()
  })
  afterEach(() => workplace.close())

  const customers = (records: string[], more: Partial<Publication> = {}) =>
    workplace.toPublication('customers', [records], more)
  const ask = (publication: Publication, select: string, table = 'customers') =>
    askDuckDb(
      ':memory:',
      `select ${select} from read_parquet(${literal(join(folderOf(publication), `${table}.parquet`))})`,
    )

  test('lies apart from CSV files, with links of its own, one file a table and the manifest', async () => {
    const publication = await customers(['{"id":"1"}'])
    const { location } = await createParquetDestination().publish(publication)
    expect(await readdir(location)).toEqual([
      'customer_contacts.parquet',
      'customers.parquet',
      'manifest.json',
    ])
    const beside = (await readdir(join(workplace.exports, 'parquet', 'customers'))).toSorted()
    expect(beside).toEqual([`${start}-export-customers-2026-03-01`, 'latest', 'latest-proven'])
    expect(await readdir(workplace.exports)).toEqual(['parquet'])
  })

  test('has columns of types, packed with zstd, and none that the run itself is in', async () => {
    const publication = await customers([
      '{"id":"1","created":"2020-10-15T13:26:15.356289-03:00","aggregations":{"sales":0.10},"send_invoices":true}',
    ])
    await createParquetDestination().publish(publication)
    expect(
      await ask(
        publication,
        `typeof(created) as created, typeof(aggregations_sales) as sales, typeof(send_invoices) as send,
          epoch_us(created) as instant, created_as_sent as text`,
      ),
    ).toEqual([
      {
        created: 'TIMESTAMP WITH TIME ZONE',
        sales: 'DECIMAL(30,8)',
        send: 'BOOLEAN',
        instant: `${Date.parse('2020-10-15T16:26:15Z') * 1000 + 356_289}`,
        text: '2020-10-15T13:26:15.356289-03:00',
      },
    ])
    const file = join(folderOf(publication), 'customers.parquet')
    const metadata = await askDuckDb(
      ':memory:',
      `select distinct compression, string_agg(distinct path_in_schema, ' ') filter (path_in_schema like '\\_%' escape '\\') as ours
        from parquet_metadata(${literal(file)}) group by 1`,
    )
    expect(metadata).toEqual([{ compression: 'ZSTD', ours: '_extra' }])
  })

  test('never rounds a number, and never changes a type', async () => {
    const numbers: [sent: string, value: string | null][] = [
      ['1e3', '1000.00000000'],
      ['12.5000000000000000000', '12.50000000'],
      ['-0.0000015', '-0.00000150'],
      ['1.5e-7', '0.00000015'],
      ['9999999999.99999999', '9999999999.99999999'],
      ['-9999999999999999999999.99999999', '-9999999999999999999999.99999999'],
      ['99999999999999999999999.9', null],
      ['0.000000001', null],
      ['1e-9', null],
      ['12e-18', null],
      ['1e400', null],
      // Before the exponent, DuckDB takes 38 digits and drops the rest.
      [`0.${'0'.repeat(36)}123e36`, null],
    ]
    const records = numbers.map(([sent], at) => `{"id":"${at}","aggregations":{"sales":${sent}}}`)
    const publication = await customers([...records, '{"id":"none"}'])
    await createParquetDestination().publish(publication)
    const rows = await ask(
      publication,
      `id, cast(aggregations_sales as varchar) as value, typeof(aggregations_sales) as type,
        _extra -> '_misfits' ->> 'aggregations_sales' as misfit`,
    )
    const type = 'DECIMAL(30,8)'
    expect(rows).toEqual([
      ...numbers.map(([sent, value], at) => ({
        id: `${at}`,
        value,
        type,
        misfit: value === null ? sent : null,
      })),
      { id: 'none', value: null, type, misfit: null },
    ])
  })

  test('counts and keeps a number that does not fit also where `_extra` is excluded', async () => {
    const publication = await customers(['{"id":"1","aggregations":{"sales":1e400}}', '{"id":"2"}'])
    const [main, ...children] = publication.tables
    const { path, table, rows } = publication.parts[0]!
    const text = (await readFile(path, 'utf8')).replaceAll(',\n', '\n')
    const { manifest } = await createParquetDestination().publish({
      ...publication,
      tables: [{ ...main!, columns: main!.columns.slice(0, -1) }, ...children],
      parts: [await writePart({ table, path, text, rows }), ...publication.parts.slice(1)],
    })
    expect(manifest.drift).toEqual({ 'customers.aggregations.sales': { count: 1, example: 'a number' } })
    expect(await ask(publication, '_extra')).toEqual([
      { _extra: '{"_misfits":{"aggregations_sales":"1e400"}}' },
      { _extra: null },
    ])
  })

  test('keeps a document that DuckDB takes for no JSON as a text: it has half a pair of surrogates', async () => {
    const publication = await customers(['{"id":"1","name":"a\\ud800","aggregations":{"sales":1e400}}'])
    const { manifest } = await createParquetDestination().publish(publication)
    const [row] = (await ask(publication, 'name, typeof(_extra) as type, _extra')) ?? []
    expect(row).toMatchObject({ name: null, type: 'JSON' })
    expect(JSON.parse(row!['_extra']!)).toBe('{"_misfits":{"aggregations_sales":"1e400"},"name":"a\\ud800"}')
    expect(manifest.drift).toMatchObject({ 'customers.aggregations.sales': { count: 1 } })
  })

  test('takes rows of some kilobytes each, more of them than fit in DuckDB’s memory', async () => {
    const text = noise(1_000_000).flat().join('').replaceAll(/\W/g, '')
    const record = (at: number) => `{"id":"${at}","name":"${text.slice(at * 25, at * 25 + 3_000)}"}`
    const batch = (at: number) => Array.from({ length: 1_000 }, (_, index) => record(at * 1_000 + index))
    const batches = Array.from({ length: 30 }, (_, at) => batch(at))
    const publication = await workplace.toPublication('customers', batches)
    const { manifest } = await createParquetDestination().publish(publication)
    expect(manifest.tables).toMatchObject([{ rows: 30_000 }, { rows: 0 }])
  })

  test("lies where the folder's name looks like a pattern", async () => {
    const folder = join(workplace.folder, "it's [here] *")
    await mkdir(folder)
    const publication = await customers(['{"id":"1"}'], { folder, run: 'a*b?[c]' })
    const { manifest } = await createParquetDestination().publish(publication)
    expect(manifest.tables).toMatchObject([{ rows: 1 }, { rows: 0 }])
  })
})
