import { parse } from 'csv-parse/sync'
import { stringify } from 'csv-stringify/sync'
import { join } from 'node:path'
import { readFile, writeFile } from 'node:fs/promises'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { contact } from '../../../core/billing/resources/customers.ts'
import { parseLossless } from '../../../core/billing/lossless-json.ts'
import { retentions } from '../../../core/billing/resources/tax-documents.ts'
import { dialectOf, toExcel, toHeader } from '../../../core/destinations/files/csv.ts'
import { isScientific } from '../../../core/imports/cells/notation.ts'
import { createRowEncoder } from '../../../core/tables/row-encoder.ts'
import type { TableSource } from '../../../core/tables/table.ts'
import { bodiesOf, temporaryFolder } from './csv-file.ts'

const seed = 20261121

/** Exports records as the csv destination writes them; gives the paths of its tables. */
async function exportTo(folder: string, resource: TableSource, json: string, forExcel: boolean) {
  const encoder = createRowEncoder({ resource })
  const encoded = encoder.encode(parseLossless(json) as unknown[])
  const paths: string[] = []
  for (const [index, table] of encoder.tables.entries()) {
    const rows = Buffer.from(encoded.tables[index]!.text)
    const body = forExcel ? Buffer.concat(await Array.fromAsync(toExcel(table, chunksOf(rows)))) : rows
    const path = join(folder, `${table.name}.csv`)
    await writeFile(path, toHeader(dialectOf(forExcel), table.columns) + body.toString())
    paths.push(path)
  }
  return paths
}

/** Adds a column to a CSV file, as a person joins the lines of an export with its records. */
async function addColumn(path: string, cells: readonly string[], forExcel: boolean) {
  const dialect = { delimiter: forExcel ? ';' : ',', bom: forExcel }
  const rows: string[][] = parse(await readFile(path), dialect)
  const joined = rows.map((row, index) => [...row, cells[index]])
  await writeFile(path, stringify(joined, { ...dialect, quoted_match: /[\r\n]/ }))
}

async function* chunksOf(bytes: Buffer) {
  yield bytes
}

const nasty = fc.oneof(
  fc.constantFrom('=1+1', "'=x", '-5', '+56 9 1234', '-x', '@a'),
  fc.constantFrom('"', ';', ',', '\n', '\r\n', ' x ', '😀', 'ñ'),
)
const text = fc
  .array(fc.oneof(nasty, fc.string({ unit: 'grapheme-ascii', maxLength: 5 })), { minLength: 1, maxLength: 3 })
  .map((parts) => parts.join(''))
  .filter((value) => value.trim() !== '' && value.trim() !== '\\N' && !isScientific(value))
const digits = fc
  .stringMatching(/^-?(0|[1-9]\d{0,17})(\.\d{1,6})?$/)
  .filter((value) => !/^-[0.]*$/.test(value))
const date = fc
  .date({ min: new Date('1990-01-01'), max: new Date('2090-01-01'), noInvalidDate: true })
  .map((day) => day.toISOString().slice(0, 10))
const raw = (value: string) => JSON.rawJSON(value)
const line = fc.record(
  {
    name: text,
    amount: digits.map(raw),
    description: text,
    exempt: fc.boolean(),
    discount_scheme: fc.constantFrom('%', '$'),
  },
  { requiredKeys: ['name'] },
)
const bodies = fc
  .array(
    fc.record(
      {
        supplier: fc.stringMatching(/^[a-z0-9_]{1,12}$/),
        document: fc.nat(),
        date,
        amount: digits.map(raw),
        total: digits.map(raw),
        lines: fc.array(line, { minLength: 1, maxLength: 3 }),
      },
      { requiredKeys: ['supplier', 'document', 'date', 'lines'] },
    ),
    { minLength: 1, maxLength: 5 },
  )
  .map((all) => all.map((body, index) => ({ ...body, number: index + 1 })))

const sorted = (json: string) => JSON.stringify(parseLossless(json), orderKeys)
const orderKeys = (_key: string, value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    : value

describe('what an export wrote comes back as what was sent', () => {
  test.each([
    ['as it is', false, { decimal: '.' }],
    ['for a spreadsheet', true, { locale: 'es-CL' }],
  ] as const)('%s', async (_what, forExcel, mapping) => {
    const folder = await temporaryFolder()
    await fc.assert(
      fc.asyncProperty(bodies, async (sent) => {
        const records = sent.map((body, index) => ({
          ...body,
          id: 1_000 + index,
          lines: body.lines.map((item, at) => ({ ...item, id: at, total: 1 })),
          status: 'draft',
          tax: null,
          test_mode: true,
          created: '2026-01-01T00:00:00-03:00',
          something_new: { a: 1 },
        }))
        const [path = ''] = await exportTo(folder, retentions, JSON.stringify(records), forExcel)
        await addColumn(path, ['lines', ...records.map(({ lines }) => JSON.stringify(lines))], forExcel)
        const back = await bodiesOf({ kind: 'retentions', path, mapping })
        expect(back.map(sorted)).toEqual(sent.map((body) => sorted(JSON.stringify(body))))
      }),
      { seed, numRuns: 60 },
    )
  })

  test('and of an update the columns that are named', async () => {
    const folder = await temporaryFolder()
    const record = { id: 'con_1', name: '=Ana', email: 'a@x.cl', phone: '+56912345678', invoicing: false }
    const contacts = { name: 'contacts', schema: contact } as const
    const [path = ''] = await exportTo(folder, contacts, JSON.stringify([record]), true)
    expect(
      await bodiesOf({ kind: 'update-contacts', path, columns: ['name', 'phone', 'invoicing'] }),
    ).toEqual(['{"id":"con_1","name":"=Ana","phone":"+56912345678","invoicing":false}'])
  })
})
