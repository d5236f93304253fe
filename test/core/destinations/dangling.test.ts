import * as fc from 'fast-check'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { subscriptions } from '../../../core/billing/resources/subscriptions.ts'
import { customers } from '../../../core/billing/resources/customers.ts'
import type { PartFile } from '../../../core/destinations/destination.ts'
import { findDangling } from '../../../core/destinations/duckdb/references.ts'
import { createRowEncoder } from '../../../core/tables/row-encoder.ts'
import { writePart } from '../exports/write-part.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'

const { signal } = new AbortController()

async function encode(folder: string, resource: typeof customers | typeof subscriptions, records: object[]) {
  const encoder = createRowEncoder({ resource })
  const parts: PartFile[] = []
  for (const [at, batch] of [records.slice(0, 3), records.slice(3)].entries())
    for (const [place, { text, rows }] of encoder.encode(batch).tables.entries()) {
      const table = encoder.tables[place]!.name
      parts.push(await writePart({ table, path: join(folder, `${table}.${at}.part`), text, rows }))
    }
  return { table: encoder.tables[0]!, parts }
}

/** Ids that CSV, SQL or a join may take for something else. */
const anyId = fc.oneof(
  fc.constantFrom('1', '01', '1.0', 'a', 'A', 'a ', 'á', 'a\u0301', 'a\nb', '\ufeffa', '😀'),
  fc.constantFrom('"', "'", ',', '\\N', 'NULL', 'null'),
  fc.string({ minLength: 1, maxLength: 3 }).filter((text) => !text.includes('\0')),
)

test('the ids that no row has are found, each once, whatever they look like', async () => {
  const property = fc.asyncProperty(
    fc.array(fc.option(anyId), { maxLength: 30 }),
    fc.uniqueArray(anyId, { maxLength: 20 }),
    async (named, known) => {
      const folder = await temporaryFolder()
      const children = named.map((customer, at) => ({ id: `s${at}`, customer }))
      const parents = known.map((id) => ({ id }))
      const found = await findDangling({
        from: { ...(await encode(folder, subscriptions, children)), column: 'customer' },
        to: { ...(await encode(folder, customers, parents)), column: 'id' },
        beside: join(folder, 'beside'),
        most: 100,
        signal,
      })
      const dangling = new Set(named.filter((id) => id !== null && !known.includes(id)))
      expect(found).toMatchObject({ checked: named.filter((id) => id !== null).length, ids: dangling.size })
      expect(new Set(found.first.map(({ id }) => id))).toEqual(dangling)
      for (const { id, from } of found.first)
        expect(children.find((child) => child.id === from)?.customer).toBe(id)
      expect(await readdir(folder)).not.toContain('beside')
    },
  )
  await fc.assert(property, { numRuns: 20, seed: 20_261_126 })
})

test('of many, only so many are named, and parts with other bytes than were written are refused', async () => {
  const folder = await temporaryFolder()
  await mkdir(join(folder, 'other'))
  const children = Array.from({ length: 50 }, (_, at) => ({ id: `s${at}`, customer: `c${at}` }))
  const from = { ...(await encode(folder, subscriptions, children)), column: 'customer' }
  const to = { ...(await encode(folder, customers, [{ id: 'c7' }])), column: 'id' }
  const find = () => findDangling({ from, to, beside: join(folder, 'beside'), most: 5, signal })
  expect(await find()).toMatchObject({
    checked: 50,
    ids: 49,
    first: [{ id: 'c0', from: 's0' }, {}, {}, {}, {}],
  })
  const { path } = to.parts[0]!
  await writeFile(path, (await readFile(path, 'utf8')).replace('c7', 'c8'))
  await expect(find()).rejects.toMatchObject({ name: 'PartsDamagedError' })
})
