import { describe, expect, test } from 'vitest'
import { checkFile } from '../../../core/imports/check.ts'
import { writeResults } from '../../../core/imports/result-sheets.ts'
import { join } from 'node:path'
import { bodiesOf, fileOf, problemsOf, rowOf, temporaryFolder } from './csv-file.ts'

const products = { kind: 'products' } as const

describe('a line sep=;', () => {
  test('decides the delimiter, and no row counts it', async () => {
    const path = await fileOf('sep=;\r\nname;unit_label\r\na, b;c\r\n"d\r\ne";f\r\ng;\r\n')
    expect(await problemsOf({ ...products, path })).toEqual([
      'row 4, unit_label: is required for every product, but empty',
    ])
    expect((await checkFile({ ...products, path })).table).toMatchObject({
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
      name: 'InvalidMapping',
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
    expect(await problemsOf({ ...products, path, mapping: { headerRow: 3 } })).toContainEqual(
      expect.stringContaining('row 3, Unidad: is not a field of products'),
    )
    await expect(checkFile({ ...products, path, mapping: { ...mapping, headerRow: 2 } })).rejects.toThrow(
      'file.csv: row 2 is empty, so it cannot be the header. Change --header-row.',
    )
  })

  test('is not in a result file, which the same mapping reads', async () => {
    const path = await fileOf(text)
    const file = { ...products, path, mapping: { ...mapping, headerRow: 3, skipRows: [2, 5] } }
    const folder = await temporaryFolder()
    const results = [rowOf(4, 'rejected', { error: 'no' })]
    await writeResults({ ...file, results, folder })
    const to = join(folder, 'rejected.csv')
    expect(await bodiesOf({ ...file, path: to })).toEqual(await bodiesOf(file))
  })

  test.each([
    ['the header is merely wrong', 'name;x\n'],
    ['what looks like a header is far below', `${'a;b\n'.repeat(20)}name;unit_label\n`],
  ])('is not suspected where %s', async (_, below) => {
    const path = await fileOf(`nombre;unidad\na;b\n${below}`)
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
    ['with a single empty cell that is required', 'Total;7;;2026-03-25;x;10\n'],
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

describe('the header again, below the rows', () => {
  const map = { columns: { Nombre: 'name', Unidad: 'unit_label', Nota: null } }
  const skip = 'row 3: repeats the header. Skip it with --skip-rows 3'

  test('is named with the option that skips it', async () => {
    const path = join(import.meta.dirname, 'files', 'header-again.csv')
    expect(await problemsOf({ ...products, path })).toEqual([skip])
    expect(await bodiesOf({ ...products, path, mapping: { skipRows: [3] } })).toHaveLength(2)
  })

  test.each([
    ['in other capitals', 'name;unit_label', 'NAME; Unit_Label', {}],
    ['with a mark of UTF-8', 'name;unit_label', '\ufeffname;unit_label', {}],
    ['with letters that nobody sees', 'name;unit_label', 'na\u200bme;unit\u00ad_label', {}],
    ['with its own names, where those are mapped', 'Nombre;Unidad;Nota', 'Nombre;Unidad;Nota', map],
    ['with the names of fields, where its own are mapped', 'Nombre;Unidad;Nota', 'name;unit_label;', map],
    ['with the number of a page where nothing is read', 'Nombre;Unidad;Nota', 'Nombre;Unidad;Página 2', map],
    ['with mapped names, where its own are fields', 'name;unit_label', 'NOMBRE;UNIDAD', map],
    [
      'with accents stored apart',
      'Razón;unit_label',
      'Razo\u0301n;unit_label',
      { columns: { Razón: 'name' } },
    ],
  ])('%s is one problem', async (_, header, again, mapping) => {
    const path = await fileOf(`${header}\na;b;\n${again}\nc;d;\n`)
    expect(await problemsOf({ ...products, path, mapping })).toEqual([skip])
  })

  test('in a file of one column is named, too', async () => {
    const path = await fileOf('id\nord_1\nID\nord_2\n')
    expect(await problemsOf({ kind: 'delete-orders', path })).toEqual([skip])
  })

  test('in another order stops the file', async () => {
    const check = await checkFile({
      ...products,
      path: await fileOf('name;unit_label\na;b\nunit_label;name\nd;c\n'),
    })
    expect(check).toMatchObject({ stopped: true, problemCount: 1 })
    expect(check.problems[0]?.message).toContain('is a header with the columns in another order')
  })

  test('is not seen in a record that is called like a column', async () => {
    const path = await fileOf('Nombre;Unidad;status\nUnidad;Unidad;active\nNombre;mes;\nname;Unidades;\n')
    expect(await problemsOf({ ...products, path, mapping: map })).toEqual([])
  })
})

test.each(['---;---', '=====;', '***;___', ' . ; - '])(
  'a row of signs is named with the option that skips it: %s',
  async (row) => {
    const path = await fileOf(`name;unit_label\na;b\n${row}\n\n\u00a0;\u200b\nc;%d\n`)
    expect(await problemsOf({ ...products, path })).toEqual([
      'row 3: has neither letters nor digits. Skip it with --skip-rows 3',
    ])
  },
)
