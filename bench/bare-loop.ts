// The baseline, in a separate process: got, JSON.parse, zod, csv-stringify, page by page, without Temporal
// and without proof. Same schema, tables and columns as the export. Usage: node bare-loop.ts <service url>
// <folder> [<requests in flight>]
import { stringify, type Stringifier } from 'csv-stringify'
import got from 'got'
import { createWriteStream } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { once } from 'node:events'
import { pipeline } from 'node:stream/promises'
import { listResources } from '../core/billing/resources/lists.ts'
import type { Column, Table } from '../core/tables/table.ts'
import { toTables } from '../core/tables/privacy.ts'

const [url = '', folder = '.', inFlight = '1'] = process.argv.slice(2)
const resource = listResources.customers
const client = got.extend({
  prefixUrl: url,
  agent: { http: new Agent({ keepAlive: true }) },
  headers: { authorization: 'Token bench', 'x-simple-workspace': 'acc_bench' },
})

const pending: Promise<void>[] = []
const files = new Map<string, Stringifier>()
const tables = toTables(resource)
for (const table of tables) {
  const rows = stringify({ header: true, columns: table.columns.map((column) => column.name) })
  files.set(table.name, rows)
  pending.push(pipeline(rows, createWriteStream(join(folder, `${table.name}.csv`))))
}

type Source = Record<string, unknown>
/** The path of a column within its record: `customers.country.id` is country, id. */
const pathOf = (column: Column) => column.source.split('.').slice(1)
const [main, ...children] = tables.map((table) => ({ table, paths: table.columns.map(pathOf) }))

function cells(paths: string[][], source: Source): unknown[] {
  return paths.map((path) => {
    let value: unknown = source
    for (const key of path) value = (value as Source | null | undefined)?.[key]
    return typeof value === 'object' && value !== null ? JSON.stringify(value) : value
  })
}

async function write(table: Table, row: unknown[]): Promise<void> {
  const file = files.get(table.name)
  if (file !== undefined && !file.write(row)) await once(file, 'drain')
}

const pageSize = 100
const fetchPage = (page: number) =>
  client.get('customers/', { searchParams: { page, page_size: pageSize, ordering: 'created' } }).text()

const ahead: Promise<string>[] = []
let last = 1
for (let page = 1; page <= last; page += 1) {
  while (ahead.length < Number(inFlight) && page + ahead.length <= last)
    ahead.push(fetchPage(page + ahead.length))
  const body = JSON.parse((await ahead.shift()) ?? '') as { results: unknown[]; count: number }
  last = Math.ceil(body.count / pageSize)
  for (const result of body.results) {
    const record = resource.schema.parse(result) as Source
    if (main !== undefined) await write(main.table, cells(main.paths, record))
    for (const child of children) {
      const items = (record['contacts'] ?? []) as Source[]
      for (const [index, item] of items.entries()) {
        const own = cells(child.paths.slice(2), item)
        await write(child.table, [record['id'], index + 1, ...own])
      }
    }
  }
}
for (const file of files.values()) file.end()
await Promise.all(pending)
