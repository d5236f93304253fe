import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { Client } from 'pg'
import { to } from 'pg-copy-streams'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Publication } from '../../../core/destinations/destination.ts'
import { createPostgresDestination } from '../../../core/destinations/postgres/postgres.ts'
import { textColumnOf } from '../../../core/destinations/layout.ts'
import { createWorkplace, type Workplace } from '../../core/destinations/publication.ts'
import { startPostgres, type Postgres } from './postgres-server.ts'

const seed = 20_411
const records = 40_000

let postgres: Postgres
let workplace: Workplace
beforeAll(async () => {
  postgres = await startPostgres()
  workplace = await createWorkplace()
})
afterAll(async () => {
  await workplace.close()
  await postgres.close()
})

/** Customers of some 300 bytes on average, no two alike, in parts of up to 200 kB: chunks of any size, which end anywhere. */
function toBatches(): string[][] {
  let state = seed
  const next = () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0)
  const below = (bound: number) => Math.floor((next() / 2 ** 32) * bound)
  const pieces = [',', '"', '\n', '\r', '\\.', 'á', '😀', '']
  const piece = () => `${next().toString(36)}${pieces[below(pieces.length)]}`
  const customer = (at: number) =>
    JSON.stringify({
      id: `c${String(at).padStart(6, '0')}`,
      name: Array.from({ length: below(60) }, piece).join(''),
      created: `2024-02-${10 + below(19)}T03:04:05.${String(at).padStart(6, '0')}-03:00`,
      // Its cell is empty in most rows.
      ...(below(4) === 0 && { updated: `2025-03-${10 + below(19)}T23:59:59.${below(1_000_000) + 1}Z` }),
    })
  const batches: string[][] = []
  for (let at = 0; at < records;) {
    const length = Math.min(1 + below(below(5) === 0 ? 600 : 60), records - at)
    batches.push(Array.from({ length }, (_, index) => customer(at + index)))
    at += length
  }
  return batches
}

/** The bytes of the parts that count. */
const bytesOf = async ({ parts }: Publication, name: string) =>
  Buffer.concat(
    await Promise.all(
      parts
        .filter(({ table }) => table === name)
        .map(async ({ path, bytes }) => (await readFile(path)).subarray(0, bytes)),
    ),
  )

// A buffer that the socket still reads while the next chunk is written to it would show here: the rows would be as many.
test(
  `every byte of ${records} rows comes to PostgreSQL, in new tables and in those that are there (seed ${seed})`,
  { tags: ['long'] },
  async () => {
    const url = await postgres.createDatabase()
    const client = new Client({ connectionString: url })
    await client.connect()
    try {
      const publication = await workplace.toPublication('customers', toBatches())
      const sent = await bytesOf(publication, 'customers')
      const columns = publication.tables[0]!.columns.map((column) => `"${textColumnOf(column)}"`)
      for (const run of ['first', 'second']) {
        await createPostgresDestination({ url }).publish({ ...publication, run })
        const rows = `select ${columns.join(', ')} from billing.customers where _run_id = '${run}' order by id`
        // PostgreSQL writes CSV as we do.
        const there = await buffer(client.query(to(`copy (${rows}) to stdout (format csv)`)))
        expect(there.equals(sent), `the rows of the ${run} run`).toBe(true)
        const { rowCount } = await client.query(`select from billing.customers
        where created is distinct from created_as_sent::timestamptz or updated is distinct from updated_as_sent::timestamptz`)
        expect(rowCount).toBe(0)
      }
    } finally {
      await client.end()
    }
  },
)
