import { describe, expect, test } from 'vitest'
import { readDate } from '../../../core/imports/cells/dates.ts'
import { readNumber } from '../../../core/imports/cells/numbers.ts'
import { checkFile } from '../../../core/imports/check.ts'
import { writeResults } from '../../../core/imports/result-sheets.ts'
import { join } from 'node:path'
import { bodiesOf, fileOf, problemsOf, temporaryFolder } from './csv-file.ts'

const products = { kind: 'products' } as const

describe('a line sep=;', () => {
  test('decides the delimiter, and no row counts it', async () => {
    const path = await fileOf('sep=;\r\nname;unit_label\r\na, b;c\r\n"d\r\ne";f\r\ng;\r\n')
    expect(await problemsOf({ ...products, path })).toEqual([
      'row 4 (line 6), unit_label: is required for every product, but empty',
    ])
    expect((await checkFile({ ...products, path })).tables.file).toMatchObject({
      dialect: { delimiter: ';' },
      header: ['name', 'unit_label'],
      headerRow: 1,
    })
  })

  test('may name a comma in a file full of semicolons, also behind a byte order mark', async () => {
    const path = await fileOf('\ufeffsep=,\nname,unit_label\na;b;c,x\nd;e;f,x\n')
    expect(await bodiesOf({ ...products, path })).toEqual([
      '{"name":"a;b;c","unit_label":"x"}',
      '{"name":"d;e;f","unit_label":"x"}',
    ])
  })
})

describe('a title above the header', () => {
  const text = 'Productos 2026;;\n;;\nname;Unidad;status\na;b;active\nc;d;activ\n'
  const mapping = { columns: { Unidad: 'unit_label' } }

  test('is answered with the row of the header', async () => {
    const path = await fileOf(text)
    await expect(checkFile({ ...products, path, mapping })).rejects.toMatchObject({
      name: 'MappingError',
      message: 'file.csv: row 1 is not the header. The header seems to be in row 3; use --header-row 3.',
    })
    const withoutCells = await fileOf(text.replace('Productos 2026;;', 'Productos 2026'))
    await expect(checkFile({ ...products, path: withoutCells, mapping })).rejects.toThrow('--header-row 3')
  })

  test('is left out with --header-row, and rows keep their numbers', async () => {
    const path = await fileOf(text)
    expect(await problemsOf({ ...products, path, mapping: { ...mapping, headerRow: 3 } })).toEqual([
      'row 5, status: activ is not one of active, archived; did you mean active?',
    ])
    await expect(checkFile({ ...products, path, mapping: { ...mapping, headerRow: 2 } })).rejects.toThrow(
      'file.csv: row 2 is empty, so it cannot be the header. Change --header-row.',
    )
  })

  test('is not in a result file, which the same mapping reads', async () => {
    const path = await fileOf(text)
    const file = { ...products, path, mapping: { ...mapping, headerRow: 3, skipRows: [2, 5] } }
    const to = join(await temporaryFolder(), 'rejected.csv')
    const results = [{ row: 4, status: 'rejected', id: null, error: 'no', sentAt: null, body: '{}' }]
    await writeResults({ ...file, sheet: 'rejected', results, to })
    expect(await bodiesOf({ ...file, path: to })).toEqual(await bodiesOf(file))
  })

  test('is not suspected where the header is merely wrong', async () => {
    const path = await fileOf('nombre;unidad\na;b\nname;x\n')
    expect(await problemsOf({ ...products, path })).toContainEqual(
      expect.stringContaining('row 1, nombre: is not a field of products'),
    )
  })
})

describe('a total below the rows', () => {
  const header = 'supplier;document;number;date;lines.1.name;lines.1.amount\n'
  const row = 's;7;1;2026-03-25;x;10\n'
  test.each([
    ['with the word', 'Total;;;;;10\n'],
    ['with the word in Spanish', ';;;;TOTAL GENERAL;10\n'],
    ['with nothing but its amount', ';;;;;10\n'],
  ])('%s is one problem, with the option that skips it', async (_, total) => {
    const path = await fileOf(header + row + total)
    const file = { kind: 'retentions', path } as const
    expect(await problemsOf(file)).toEqual(['row 3: looks like a total. Skip it with --skip-rows 3'])
    const { totals, problems } = await checkFile({ ...file, mapping: { skipRows: [3] } })
    expect({ totals, problems }).toMatchObject({
      totals: { rows: 1, sums: { 'lines.amount': '10' } },
      problems: [],
    })
  })
})

test.each([
  ['14,5%', ',', '14,5'],
  ['14.5 %', '.', '14.5'],
  ['19%', undefined, '19'],
] as const)('%s is answered with the number without its percent sign', (text, mark, fix) => {
  expect(readNumber(text, mark)).toEqual({ message: 'has a percent sign', fix })
})

test.each([
  ['46106', 'dmy', '25-03-2026'],
  ['46106,0', undefined, '2026-03-25'],
  ['12345', 'dmy', undefined],
  ['20260325', 'dmy', undefined],
] as const)('the day number %s is answered with its day, if it is near', (text, order, fix) => {
  const reading = readDate(text, order)
  expect('fix' in reading ? reading.fix : undefined).toBe(fix)
})
