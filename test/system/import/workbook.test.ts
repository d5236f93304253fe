import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Big } from 'big.js'
import { expect, test } from 'vitest'
import { type Cell, dayNumber, xlsxOf } from '../../core/imports/xlsx-file.ts'
import { createWorld, startCommand, startTestWorker, type World } from '../export/world.ts'

const soon = { BILLING_SETTLE_SECONDS: '0.1' }
const rows = 200
const firstRow = 4

/** Of so many rows, each with a mistake that people make; the text that is fixed in rejected.csv, and its correction. */
const mistakes: readonly [row: number, column: number, wrong: Cell, shown: string, fixed: string][] = [
  [10, 1, '31-02-2026', '31-02-2026', '28-02-2026'],
  [11, 1, 46_106, '46106', '25-03-2026'],
  [12, 1, { value: 46_106.5, style: 'dateTime' }, '25-03-2026 12:00:00', '25-03-2026'],
  [30, 2, '9.999.999-9', '9.999.999-9', '76.123.456-7'],
  [31, 2, undefined, ';;', ';76.123.456-7;'],
  [50, 4, '1.500 CLP', '1.500 CLP', '1.500'],
  [51, 4, 'mil', 'mil', '1000'],
  [52, 4, '#N/D', '#N/D', '1000,5'],
  [70, 5, { value: 0.145, style: 'percent' }, '14,5%', '14,5'],
  [71, 5, { xml: '<f>B1</f>' }, '#NOT CALCULATED', '14,5'],
  [90, 0, 0, '0;', '91;'],
  [91, 0, 91.5, '91,5', '92'],
]

/** A sheet as people keep it: a title, a header in row 3, typed cells, and a total below. */
function sheet(): Uint8Array {
  const data = Array.from({ length: rows }, (_, index): Cell[] => [
    index + 1,
    { value: dayNumber('2026-03-01') + (index % 28), style: 'date' },
    index % 2 === 0 ? '76.123.456-7' : '9.876.543-K',
    'Honorarios',
    { value: 1000.5, style: 'money' },
    14.5,
  ])
  for (const [row, column, wrong] of mistakes) data[row]![column] = wrong
  const header = ['Folio', 'Fecha', 'RUT', 'Glosa', 'Monto', 'Tasa']
  const total = [
    'Total',
    undefined,
    undefined,
    undefined,
    { value: 200_100, style: 'money', formula: 'SUM(E4:E203)' },
  ]
  return xlsxOf([
    { name: 'Marzo', rows: [['Retenciones de marzo'], [], header, ...data, total as Cell[]] },
    { name: 'Notas', rows: [['No son datos']] },
  ])
}

const options = [
  '--locale',
  'es-CL',
  '--set',
  'document=7',
  '--lookup',
  'supplier=proveedores.csv',
  '--yes',
].concat(
  [
    'Folio=number',
    'Fecha=date',
    'RUT=supplier',
    'Glosa=lines.1.name',
    'Monto=lines.1.amount',
    'Tasa=tax_percent',
  ].flatMap((pair) => ['--map', pair]),
)

const importOf = (world: World, file: string, ...more: string[]) =>
  startCommand(world, ['import', 'retentions', file, ...options, ...more], {
    env: { ...soon, INIT_CWD: world.dataDir },
  }).ended

test(
  'an .xlsx of 200 rows, 12 of them wrong, is imported whole: its rejected.csv is fixed and imported the same way',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ counts: { customers: 1, subscriptions: 0, plans: 0, retentions: 0 } })
    await startTestWorker(world, soon)
    await writeFile(join(world.dataDir, 'planilla.xlsx'), sheet())
    await writeFile(join(world.dataDir, 'proveedores.csv'), '76.123.456-7;sup_1\n9.876.543-K;sup_2\n')

    const asked = await importOf(world, 'planilla.xlsx')
    expect([asked.code, asked.stderr]).toEqual([
      2,
      expect.stringContaining(
        'planilla.xlsx: row 1 is not the header. The header seems to be in row 3; use --header-row 3.',
      ),
    ])
    const withTotal = await importOf(world, 'planilla.xlsx', '--header-row', '3')
    expect(withTotal.code).toBe(2)
    expect(withTotal.stderr).toContain('row 204: looks like a total. Skip it with --skip-rows 204')
    expect(withTotal.stderr).toContain('planilla.xlsx: the sheet Marzo is read; Notas is not.')
    expect(withTotal.stderr).toContain('error: planilla.xlsx has 13 problems, so nothing was sent.')

    const reading = ['--header-row', '3', '--skip-rows', '204']
    const first = await importOf(world, 'planilla.xlsx', ...reading, '--on-invalid', 'skip', '--json')
    expect(first.code).toBe(3)
    const report = JSON.parse(first.stdout) as { run: string; files: { rejected: string } }
    expect(report).toMatchObject({
      verdict: 'proven',
      counts: { done: 188, rejected: 12 },
      sheets: [{ role: 'file', file: 'planilla.xlsx', read: 'Marzo', unread: ['Notas'] }],
    })

    let rejected = await readFile(report.files.rejected, 'utf8')
    for (const [row, , , shown, fixed] of mistakes) {
      const lines = rejected.split('\r\n')
      const at = lines.findIndex((line) => line.includes(`;${row + firstRow};`))
      expect(lines[at], `row ${row + firstRow}`).toContain(shown)
      lines[at] = lines[at]!.replace(shown, fixed)
      rejected = lines.join('\r\n')
    }
    await writeFile(join(world.dataDir, 'rejected.csv'), rejected)
    const second = await importOf(world, 'rejected.csv', '--expect-rows', '12', '--json')
    expect(second.stderr).not.toContain('error:')
    expect(JSON.parse(second.stdout)).toMatchObject({ verdict: 'proven', counts: { done: 12, rejected: 0 } })
    expect(second.code).toBe(0)

    const stored = [...world.sandbox.control.records({ resource: 'retentions' })]
    const records = stored.map(
      (text) => JSON.parse(text) as { number: number; lines: { amount: string | number }[] },
    )
    expect(records.map(({ number }) => number).toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: rows }, (_, index) => index + 1),
    )
    // 197 amounts of 1000.50, and those that were corrected to 1500, 1000 and 1000.50.
    const sum = records.reduce((all, { lines: [line] }) => all.plus(String(line?.amount)), new Big(0))
    expect(sum.toFixed(2)).toBe('200599.00')
  },
)
