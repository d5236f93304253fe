import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createEncoder } from '../../../core/imports/csv/encoding.ts'
import { createRowScanner } from '../../../core/imports/csv/rows.ts'
import type { Mapping } from '../../../core/imports/mapping/mapping.ts'
import { type Sheet, writeResults } from '../../../core/imports/result-sheets.ts'
import { guardFormula, unguardFormula } from '../../../core/tables/formula-guard.ts'
import type { LedgerRow } from '../../../core/state/ledger/row.ts'
import { bodiesOf, fileOf, problemsOf, rowOf, temporaryFolder } from './csv-file.ts'

async function write(options: {
  path: string
  sheet: Sheet
  results: LedgerRow[]
  kind?: 'retentions' | 'products'
  mapping?: Mapping
}) {
  const folder = await temporaryFolder()
  await writeResults({ kind: 'products', ...options, folder })
  const to = join(folder, `${options.sheet}.csv`)
  return { to, bytes: await readFile(to) }
}

describe('results', () => {
  test('are the file’s own rows, byte for byte in its own dialect, with their outcomes', async () => {
    const text = 'name;unit_label\r\n"Año; ""uno""";mes\r\n\r\nDos€;a\r\nTres;b\r\n'
    const path = await fileOf(createEncoder('windows-1252')(text))
    const results = [
      rowOf(2, 'done', { answerId: 'p1', sentAt: Date.UTC(2026, 2, 4) }),
      rowOf(4, 'rejected', { error: '=HYPERLINK(1) — no 🙂' }),
    ]
    const { bytes } = await write({ path, sheet: 'results', results })
    expect(new TextDecoder('windows-1252').decode(bytes)).toBe(
      'name;unit_label;_row;_status;_id;_error;_sent_at\r\n' +
        '"Año; ""uno""";mes;2;done;p1;;2026-03-04T00:00:00.000Z\r\n' +
        "Dos€;a;4;rejected;;'=HYPERLINK(1) — no ?;\r\n" +
        'Tres;b;5;;;;\r\n',
    )
  })

  test('that were rejected can be fixed and imported again, repeatedly', async () => {
    const path = await fileOf('\ufeffname;unit_label\na;x\nb;y\nc;z\n')
    const rejected = rowOf(3, 'rejected', { error: 'unit_label: no' })
    const first = await write({ path, sheet: 'rejected', results: [rowOf(2, 'done'), rejected] })
    expect(first.bytes.toString()).toBe('\ufeffname;unit_label;_row;_error\nb;y;3;unit_label: no\n')
    expect(await problemsOf({ kind: 'products', path: first.to })).toEqual([])
    expect(await bodiesOf({ kind: 'products', path: first.to })).toEqual(['{"name":"b","unit_label":"y"}'])
    const second = await write({ path: first.to, sheet: 'rejected', results: [rowOf(2, 'rejected')] })
    expect(second.bytes.toString()).toBe('\ufeffname;unit_label;_row;_error\nb;y;2;\n')
  })

  test('of a change of several rows stand in each of them, with the number of its first', async () => {
    const path = await fileOf(
      'supplier,document,number,date,lines.name\ns,7,1,2026-03-25,a\ns,7,1,2026-03-25,b\ns,7,2,2026-03-25,c\n',
    )
    const sent = '{"supplier":"s","document":7,"number":1}'
    const results = [rowOf(2, 'parked', { error: 'lost', sentAt: 0, body: sent }), rowOf(4, 'done')]
    const { bytes } = await write({ kind: 'retentions', path, sheet: 'parked', results })
    const tail = `parked,,lost,1970-01-01T00:00:00.000Z,"${sent.replaceAll('"', '""')}","retention: supplier s, document 7, number 1"`
    expect(bytes.toString()).toBe(
      'supplier,document,number,date,lines.name,_row,_status,_id,_error,_sent_at,_sent,_look\n' +
        `s,7,1,2026-03-25,a,2,${tail}\ns,7,1,2026-03-25,b,2,${tail}\n`,
    )
  })

  test('that are the same retention twice are not one with the lines of both when they are imported again', async () => {
    const path = await fileOf(
      'supplier,document,number,date,lines.name,lines.amount\n' +
        's,7,1,2026-03-25,a,1\ns,7,1,2026-03-25,b,1\ns,7,2,2026-03-25,c,1\ns,7,1,2026-03-25,a,1\ns,7,1,2026-03-25,b,1\n',
    )
    const same =
      'supplier, document, number: is the same retention as row 2. Keep the rows of one retention together'
    expect(await problemsOf({ kind: 'retentions', path })).toEqual([`row 5, ${same}`])
    const results = [rowOf(2, 'rejected'), rowOf(4, 'done'), rowOf(5, 'rejected')]
    const { to } = await write({ kind: 'retentions', path, sheet: 'rejected', results })
    expect(await problemsOf({ kind: 'retentions', path: to })).toEqual([`row 4, ${same}`])
    const again = [rowOf(2, 'rejected'), rowOf(4, 'rejected')]
    const twice = await write({ kind: 'retentions', path: to, sheet: 'rejected', results: again })
    expect(await problemsOf({ kind: 'retentions', path: twice.to })).toEqual([`row 4, ${same}`])
  })
})

test('every cell comes back, in any encoding', async () => {
  const letters = fc.constantFrom('a', 'ñ', '€', '"', ';', '\n', '\r', ' ', "'", '=', 'Ÿ')
  const cell = fc.string({ unit: letters, maxLength: 6 }).filter((value) => value.trim() !== '')
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(cell, cell), { minLength: 1, maxLength: 5 }),
      fc.constantFrom('utf-8', 'windows-1252', 'macintosh'),
      async (rows, encoding) => {
        const text = `name;unit_label\n${rows.map((cells) => cells.map(quoted).join(';')).join('\n')}\n`
        const path = await fileOf(createEncoder(encoding)(text))
        const { bytes } = await write({ path, sheet: 'results', results: [], mapping: { encoding } })
        const { rows: back } = createRowScanner({ delimiter: ';' }).push(
          new TextDecoder(encoding).decode(bytes),
        )
        // A cell that a spreadsheet would run has a quote in front, and is otherwise what it was.
        const read = (cells: string[]) => cells.slice(0, 2).map(unguardFormula)
        expect(back.slice(1).map(({ cells }) => read(cells))).toEqual(rows.map(read))
      },
    ),
    { seed: 20261121, numRuns: 50 },
  )
})

test('no cell of a sheet runs as a formula, and a sheet that is imported again means the same', async () => {
  const parts = fc.constantFrom('=', '+', '-', '@', '＝', '\n', '\t', "'", '1', 'a', '.', ',', ' ', 'ñ')
  const cell = fc
    .string({ unit: parts, minLength: 1, maxLength: 6 })
    .filter((value) => value.trim() !== '' && value.trim() === value)
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(cell, cell), { minLength: 1, maxLength: 4 }),
      // An update has ids, names and a truth; each dialect that a file may come in, one column with a foreign name.
      fc.constantFrom(',', ';'),
      fc.constantFrom('', '\ufeff'),
      async (rows, delimiter, bom) => {
        const lines = rows.map(([id, name]) => [id, name, 'true'].map(quoted).join(delimiter))
        const header = ['id', '"=cmd"', 'invoicing'].join(delimiter)
        const mapping = { columns: { '=cmd': 'name' } }
        const path = await fileOf(`${bom}${header}\n${lines.join('\n')}\n`)
        const file = { kind: 'update-contacts', mapping } as const
        const sent = await bodiesOf({ ...file, path }).catch(() => undefined)
        if (sent === undefined) return
        const results = rows.map((_, index) => rowOf(index + 2, 'rejected', { error: '=1' }))
        const first = await writeTo({ ...file, path, results })
        const again = await writeTo({ ...file, path: first, results })
        for (const sheet of [first, again]) {
          const { rows: back } = createRowScanner({ delimiter }).push(await readFile(sheet, 'utf8'))
          for (const { cells } of back) for (const cell of cells) expect(runs(cell)).toBe(false)
          expect(await bodiesOf({ ...file, path: sheet })).toEqual(sent)
        }
        expect(await readFile(again)).toEqual(await readFile(first))
      },
    ),
    { seed: 20261121, numRuns: 60 },
  )
})

test('a number, a lookup and a key that a guard stood before are read as without it', async () => {
  const path = await fileOf("name,description,currency,amount\n=a,-b,CLP,'-1\n=c,d,CLP,-1.234.567,50\n")
  expect(await problemsOf({ kind: 'addons', path, mapping: { decimal: ',' } })).not.toEqual([])
  const other = await fileOf('name;description;currency;amount\n=a;-b;CLP;+1.234.567,50\n')
  const file = { kind: 'addons', mapping: { decimal: ',' } } as const
  const [sent] = await bodiesOf({ ...file, path: other })
  const sheet = await writeTo({ ...file, path: other, results: [rowOf(2, 'rejected')] })
  expect(await readFile(sheet, 'utf8')).toContain("'=a;'-b;CLP;'+1.234.567,50;2;")
  expect(await bodiesOf({ ...file, path: sheet })).toEqual([sent])
})

const quoted = (value: string) => `"${value.replaceAll('"', '""')}"`

async function writeTo(options: Omit<Parameters<typeof writeResults>[0], 'folder'>): Promise<string> {
  const folder = await temporaryFolder()
  await writeResults({ ...options, folder })
  return join(folder, 'rejected.csv')
}

/** Whether a spreadsheet would run it: the guard's own rule, which its test holds. */
const runs = (cell: string) => !cell.startsWith("'") && guardFormula(cell) !== cell
