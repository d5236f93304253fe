import { parse } from 'csv-parse/sync'
import * as fc from 'fast-check'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCsvDestination } from '../../../core/destinations/files/csv.ts'
import { verifyExport } from '../../../core/destinations/files/verify.ts'
import { readCell } from '../../../core/tables/cell.ts'
import { unguardFormula } from '../../../core/tables/formula-guard.ts'
import { parseRows } from '../tables/csv.ts'
import { createWorkplace, type Workplace } from './publication.ts'

describe('an export for Excel', () => {
  let workplace: Workplace
  let runs = 0
  beforeAll(async () => {
    workplace = await createWorkplace()
  })
  afterAll(() => workplace.close())

  async function publish(records: readonly string[]) {
    const publication = await workplace.toPublication('customers', [records], {
      run: `run-${runs++}`,
      forExcel: true,
    })
    const { location, manifest } = await createCsvDestination().publish(publication)
    const text = await readFile(join(location, 'customers.csv'), 'utf8')
    const part = publication.parts.find(({ table }) => table === 'customers')!
    const original = parseRows((await readFile(part.path)).subarray(0, part.bytes).toString())
    return { location, manifest, text, original, columns: publication.tables[0]!.columns }
  }

  test('has a byte order mark, semicolons, the decimal comma in number columns and no cell that runs', async () => {
    const { text, manifest, location } = await publish([
      '{"id":"=1+1","name":"a;b","email":"a,b","phone":"+56 9 1234","reference":"-1.5","aggregations":{"sales":-1500.50}}',
    ])
    expect(text).toMatch(/^\ufeffid;name;address;/)
    expect(text).toContain('\n\'=1+1;"a;b";')
    expect(text).toContain(';a,b;+56 9 1234;')
    expect(text).toContain(';-1.5;')
    expect(text).toContain(';-1500,50;')
    expect(manifest.dialect).toMatchObject({ delimiter: ';', decimal: ',', bom: true, formulaGuard: true })
    expect((await verifyExport(location)).problems).toEqual([])
  })

  test('shows texts as they are that Excel takes for numbers, days or formulas, and leaves others alone', async () => {
    const texts = [
      ['01000', '="01000"'],
      ['7.890', '="7.890"'],
      ['3-4', '="3-4"'],
      ['12/05/2026', '="12/05/2026"'],
      ['10:30', '="10:30"'],
      ['1E5', '="1E5"'],
      ['123456789012', '="123456789012"'],
      ['MAR-12', '="MAR-12"'],
      ['3 ene', '="3 ene"'],
      ['+56912345678', '="+56912345678"'],
      ['+56-2-2345-6789', '="+56-2-2345-6789"'],
      ['="01000"', `'="01000"`],
      ['8320000', '8320000'],
      ['0', '0'],
      ['Calle 7', 'Calle 7'],
      ['PLAN-12', 'PLAN-12'],
      ['marzo', 'marzo'],
      ['12345678-K', '12345678-K'],
      ['+56 9 1234 5678', '+56 9 1234 5678'],
    ] as const
    const { text } = await publish(texts.map(([zip_code], at) => JSON.stringify({ id: `${at}`, zip_code })))
    const rows = parse<Record<string, string>>(text, { delimiter: ';', bom: true, columns: true })
    expect(rows.map((row) => row['zip_code'])).toEqual(texts.map(([, written]) => written))
    expect(texts.map(([, written]) => unguardFormula(written))).toEqual(texts.map(([sent]) => sent))
  })

  test('is undone exactly, cell by cell', async () => {
    const cell = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.string({ unit: fc.constantFrom(...Array.from(`'=+-@\t\r\n"0-;,.5a\ufeff`)) }),
    )
    const record = fc.record({
      name: fc.option(cell),
      phone: cell,
      metadata: fc.jsonValue(),
      undocumented: cell,
      aggregations: fc.record({ sales: fc.double({ noNaN: true, noDefaultInfinity: true }) }),
    })
    const records = fc.array(record, { maxLength: 50, size: 'max' })
    await fc.assert(
      fc.asyncProperty(records, async (records) => {
        const sent = records.map((record, at) => JSON.stringify({ ...record, id: `'=${at}` }))
        const { text, original, columns } = await publish(sent)
        const rows = parse(text, { delimiter: ';', bom: true, cast: readCell, from_line: 2 }) as (
          | string
          | null
        )[][]
        const undone = rows.map((row) =>
          row.map((cell, at) => {
            if (cell === null) return null
            const isNumber = ['integer', 'decimal'].includes(columns[at]!.kind)
            return isNumber ? cell.replace(',', '.') : unguardFormula(cell)
          }),
        )
        expect(undone).toEqual(original)
      }),
      { seed: 20_267, numRuns: 15 },
    )
  })
})
