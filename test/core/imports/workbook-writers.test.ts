import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { strToU8, unzipSync, type Zippable, zipSync } from 'fflate'
import { describe, expect, test } from 'vitest'
import type { ImportFile } from '../../../core/imports/open-file.ts'
import { sheetsNotRead } from '../../../core/imports/view.ts'
import { bodiesOf, fileOf, problemsOf } from './csv-file.ts'
import { type Cell, copied, xlsxOf } from './xlsx-file.ts'

type Reading = Partial<ImportFile> & Pick<ImportFile, 'kind'>

/** The value of one field in each row, or why the file is refused. */
async function valuesOf(bytes: Uint8Array, file: Reading, field: string): Promise<unknown> {
  return await copied(bytes, file).then(
    async (input) => {
      const problems = await problemsOf(input)
      if (problems.length > 0) return problems
      return (await bodiesOf(input)).map((body) => (JSON.parse(body) as Record<string, unknown>)[field])
    },
    (error: Error) => error.message,
  )
}

const columns = ['name', 'unit_label']
const notCalculated =
  'is a formula that no spreadsheet has calculated. Open the file in a spreadsheet and save it again'

describe('sheets that are not read', () => {
  test('are named, and the one that is read', async () => {
    const rows = [['name'], ['a']]
    const bytes = xlsxOf(['Enero', 'Febrero', 'Marzo'].map((name) => ({ name, rows })))
    const { mapping } = await copied(bytes, { kind: 'products' })
    expect(sheetsNotRead(mapping?.sheets)).toEqual([
      'planilla.xlsx: the sheet Enero is read; Febrero and Marzo are not. Choose one with --sheet.',
    ])
  })

  test('are named if the one that is read is a cover or empty', async () => {
    const data = { name: 'Datos', rows: [columns, ['a', 'b']] }
    for (const rows of [[], [['Informe']]]) {
      const bytes = xlsxOf([{ name: 'Portada', rows }, data])
      expect(await valuesOf(bytes, { kind: 'products' }, 'name')).toBe(
        'planilla.xlsx: the sheet Portada has no rows below a header. Its other sheets (Datos) were not read; choose one with --sheet.',
      )
      expect(await valuesOf(bytes, { kind: 'products', mapping: { sheet: 'Datos' } }, 'name')).toEqual(['a'])
    }
  })

  test('are not spoken of where the one that is read is empty and the only one', async () => {
    const bytes = xlsxOf([{ name: 'Portada', rows: [['Informe']] }])
    const { mapping } = await copied(bytes, { kind: 'products' })
    expect(sheetsNotRead(mapping?.sheets)).toEqual([])
  })

  test('of a lookup file are chosen by their order, because --sheet is for the file', async () => {
    const sheets = [{ rows: [['R-1', 'sup_1']] }, { name: 'Bajas', rows: [['R-2', 'sup_2']] }]
    const mapping = { lookups: { supplier: await fileOf(xlsxOf(sheets), 'rut.xlsx') } }
    const rows = [
      ['supplier', 'document', 'number', 'date', 'lines.1.name'],
      ['R-1', 7, 1, '2026-03-25', 'x'],
    ]
    const input = await copied(xlsxOf([{ rows }]), { kind: 'retentions', mapping })
    expect(sheetsNotRead(input.mapping?.sheets)).toEqual([
      'rut.xlsx: the sheet Hoja1 is read; Bajas is not. Put the right one first.',
    ])
  })

  test('are none where a workbook, as openpyxl writes it, has one sheet behind its charts', async () => {
    const bytes = await readFile(join(import.meta.dirname, 'workbooks/chartsheet-first.xlsx'))
    const { mapping } = await copied(bytes, { kind: 'products' })
    expect(sheetsNotRead(mapping?.sheets)).toEqual([])
    expect(await valuesOf(bytes, { kind: 'products' }, 'name')).toEqual(['Chart A', 'Chart B'])
  })
})

describe('formulas', () => {
  const header = ['name', 'description', 'currency', 'amount', 'sku']
  const rowOf = (amount: Cell, sku: Cell = 'S-1'): Cell[] => ['Soporte', 'x', 'CLP', amount, sku]
  const zero = { xml: '<f>1+1</f><v>0</v>' }
  const two = { xml: '<f>1+1</f><v>2</v>' }
  const refused = (row: number, column: string) => `row ${row}, ${column}: #NOT CALCULATED ${notCalculated}`
  const amounts = async (rows: Cell[][], calcPr: string) =>
    valuesOf(xlsxOf([{ rows: [header, ...rows] }], { calcPr }), { kind: 'addons' }, 'amount')

  test.each([
    ['XlsxWriter, libxlsxwriter, rust_xlsxwriter and Excel::Writer::XLSX', zero],
    ['PhpSpreadsheet without calculation', { xml: '<f>1+1</f><v>0</v>', attributes: 't="str"' }],
    ['a library in Java', { xml: '<f>1+1</f><v>0.0</v>', attributes: 't="n"' }],
    ['a shared formula', { xml: '<f t="shared" si="0"/><v>0</v>' }],
    ['an empty text', { xml: '<f>1+1</f><v></v>', attributes: 't="str"' }],
    ['openpyxl', { xml: '<f>1+1</f><v/>' }],
    ['EPPlus and SheetJS', { xml: '<f>1+1</f>' }],
    ['PHP_XLSXWriter', { xml: '<f>1+1</f>', attributes: 't="s"' }],
  ])('of a workbook that asks to be calculated have no result: %s', async (_, cell) => {
    const asks = ['calcId="124519" fullCalcOnLoad="1"', 'calcCompleted="0"', 'calcId="0"']
    for (const calcPr of asks.map((ask) => `<calcPr ${ask}/>`))
      expect(await amounts([rowOf(cell), rowOf(two)], calcPr)).toEqual([refused(2, 'amount')])
  })

  test('keep their results in a workbook that a spreadsheet has calculated', async () => {
    for (const calcPr of ['<calcPr calcId="191029"/>', '<calcPr/>', '<calcPr calcMode="manual"/>'])
      expect(await amounts([rowOf(zero), rowOf(two)], calcPr)).toEqual([0, 2])
  })

  test('that all have the result 0, in a workbook that says nothing about it, were never calculated', async () => {
    expect(await amounts([rowOf(zero), rowOf(zero)], '')).toBe(
      'planilla.xlsx seems never to have been calculated: the result of each of its formulas is 0 or empty (row 2, amount; row 3, amount). Open it in a spreadsheet and save it again.',
    )
    expect(await amounts([rowOf(zero), rowOf(two)], '')).toEqual([0, 2])
    expect(await amounts([rowOf(0), rowOf(2)], '')).toEqual([0, 2])
  })

  test('do no harm in a column that is not read', async () => {
    const rows = [
      [...header, 'Nota'],
      [...rowOf(1), zero],
    ]
    const bytes = xlsxOf([{ rows }], { calcPr: '<calcPr fullCalcOnLoad="1"/>' })
    const mapping = { columns: { Nota: null } }
    expect(await valuesOf(bytes, { kind: 'addons', mapping }, 'amount')).toEqual([1])
  })
})

describe('what a sheet hides', () => {
  const header = ['name', 'unit_label', 'status']
  const rows = [header, ['a', 'mes', 'archived'], ['b', 'mes', 'active']]
  const products = (before: string, rowsXml?: string) => {
    const xml = `<worksheet>${before}<sheetData>${rowsXml}</sheetData></worksheet>`
    const parts = { 'xl/worksheets/sheet1.xml': strToU8(xml) }
    const bytes = xlsxOf([{ rows, before }], rowsXml === undefined ? {} : { parts })
    return valuesOf(bytes, { kind: 'products' }, 'name')
  }
  test.each([
    ['hidden', '<cols><col min="3" max="3" hidden="1"/></cols>'],
    ['of width 0', '<cols><col min="2" max="16384" width="0" customWidth="1"/></cols>'],
    [
      'in a collapsed group',
      '<cols><col min="3" max="3" outlineLevel="1" hidden="true"/><col min="4" max="4" collapsed="1"/></cols>',
    ],
    [
      'without width by default',
      '<sheetFormatPr defaultColWidth="0"/><cols><col min="1" max="1" width="9"/></cols>',
    ],
  ])('is refused if it is a column that is %s', async (_, before) => {
    expect(await products(before)).toEqual(
      expect.stringMatching(
        /has values in hidden columns \((unit_label, )?status\)\. Show the columns in the spreadsheet/,
      ),
    )
  })

  const textRow = (row: number, attributes: string, name: string) =>
    `<row r="${row}" ${attributes}><c t="inlineStr"><is><t>${name}</t></is></c><c t="inlineStr"><is><t>unit_label</t></is></c></row>`
  test.each([
    ['hidden', '', 'hidden="true"'],
    ['of height 0', '', 'ht="0" customHeight="1"'],
    ['of one pixel', '', 'ht="0.75" customHeight="1"'],
    ['without height by default', '<sheetFormatPr defaultRowHeight="0" customHeight="1"/>', ''],
  ])('is refused if it is a row that is %s', async (_, before, attributes) => {
    const xml = textRow(1, 'ht="15"', 'name') + textRow(2, attributes, 'a')
    expect(await products(before, xml)).toEqual(expect.stringContaining('has hidden rows'))
  })

  test('is nothing where only columns without values, and rows that are not there, are hidden', async () => {
    const before =
      '<sheetFormatPr defaultRowHeight="15" zeroHeight="1"/><cols><col min="4" max="16384" hidden="1"/></cols>'
    expect(await products(before)).toEqual(['a', 'b'])
  })

  test('is nothing where the hidden column is mapped to nothing', async () => {
    const bytes = xlsxOf([{ rows, before: '<cols><col min="3" max="3" hidden="1"/></cols>' }])
    const mapping = { columns: { status: null } }
    expect(await valuesOf(bytes, { kind: 'products', mapping }, 'name')).toEqual(['a', 'b'])
  })

  test('stays readable in a lookup', async () => {
    const before = '<cols><col min="1" max="2" hidden="1"/></cols>'
    const lookup = await fileOf(xlsxOf([{ rows: [['R-1', 'sup_1']], hidden: [1], before }]), 'rut.xlsx')
    const mapping = { columns: { RUT: 'supplier' }, lookups: { supplier: lookup } }
    const header = ['RUT', 'document', 'number', 'date', 'lines.1.name']
    const bytes = xlsxOf([{ rows: [header, ['R-1', 7, 1, '2026-03-25', 'x']] }])
    expect(await valuesOf(bytes, { kind: 'retentions', mapping }, 'supplier')).toEqual(['sup_1'])
  })
})

describe('the parts of a workbook', () => {
  const plain = () => xlsxOf([{ name: 'Datos', rows: [columns, ['a', 'mes']] }])
  const changed = (change: (parts: Record<string, string>) => Record<string, string>): Uint8Array => {
    const parts = Object.entries(unzipSync(plain())).map(([path, bytes]) => [
      path,
      Buffer.from(bytes).toString(),
    ])
    const entries = Object.entries(change(Object.fromEntries(parts) as Record<string, string>))
    return zipSync(Object.fromEntries(entries.map(([path, text]) => [path, strToU8(text)])) as Zippable)
  }
  const without = (path: string) =>
    changed((parts) => Object.fromEntries(Object.entries(parts).filter(([name]) => name !== path)))
  const sheet1 = 'xl/worksheets/sheet1.xml'
  type Parts = Record<string, string>
  const renamed = (parts: Parts, toName: (path: string) => string) =>
    Object.fromEntries(Object.entries(parts).map(([path, text]) => [toName(path), text]))
  /** Changes the texts of these parts. */
  const edited = (parts: Parts, paths: readonly string[], change: (text: string) => string) => ({
    ...parts,
    ...Object.fromEntries(paths.map((path) => [path, change(parts[path] ?? '')])),
  })
  const strict = (text: string) =>
    text.replaceAll(
      'http://schemas.openxmlformats.org/officeDocument/2006/relationships',
      'http://purl.oclc.org/ooxml/officeDocument/relationships',
    )
  const extension = '<extLst xmlns:e="urn:e"><e:v>9</e:v><e:c r="Z9"/></extLst>'
  const otherNames: Parts = {
    'xl/workbook.xml': 'book/main.xml',
    'xl/_rels/workbook.xml.rels': 'book/_rels/main.xml.rels',
    'xl/worksheets/sheet1.xml': 'data/hoja 1.xml',
    'xl/sharedStrings.xml': 'book/texts.xml',
    'xl/styles.xml': 'look.xml',
  }
  const prefixed = (text: string) =>
    text.replaceAll(/<(\/?)(?=[a-zA-Z])/g, '<$1x:').replace(/<x:(\w+)/, '<x:$1 xmlns:x="urn:x"')

  test.each<[string, (parts: Parts) => Parts]>([
    ['in the strict namespace', (parts) => edited(parts, Object.keys(parts), strict)],
    ['with a slash before their names', (parts) => renamed(parts, (path) => `/${path}`)],
    ['with backslashes in their names', (parts) => renamed(parts, (path) => path.replaceAll('/', '\\'))],
    [
      'with other names',
      (parts) => ({
        ...renamed(parts, (path) => otherNames[path] ?? path),
        '_rels/.rels': parts['_rels/.rels']?.replace('xl/workbook.xml', '/book/main.xml') ?? '',
        'book/_rels/main.xml.rels':
          parts['xl/_rels/workbook.xml.rels']
            ?.replace('worksheets/sheet1.xml', '../data/hoja%201.xml')
            .replace('sharedStrings.xml', './texts.xml')
            .replace('styles.xml', '/look.xml') ?? '',
      }),
    ],
    [
      'with a prefix for every element',
      (parts) => edited(parts, [sheet1, 'xl/sharedStrings.xml', 'xl/workbook.xml'], prefixed),
    ],
    [
      'with names in other capitals',
      (parts) => renamed(parts, (path) => path.replace('sharedStrings.xml', 'SharedStrings.xml')),
    ],
    [
      'with another prefix for relationships',
      (parts) =>
        edited(parts, ['xl/workbook.xml'], (text) =>
          text.replace('xmlns:r=', 'xmlns:rel=').replaceAll(' r:id=', ' rel:id='),
        ),
    ],
    [
      'with values of an extension inside cells',
      (parts) => edited(parts, [sheet1], (text) => text.replace('</c>', `${extension}</c>`)),
    ],
    [
      'without numbers of rows and cells',
      (parts) => edited(parts, [sheet1], (text) => text.replaceAll(/ r="[^"]*"/g, '')),
    ],
    [
      'without numbers of rows',
      (parts) => edited(parts, [sheet1], (text) => text.replaceAll(/<row r="[^"]*"/g, '<row')),
    ],
  ])('are found %s', async (_, change) => {
    expect(await valuesOf(changed(change), { kind: 'products' }, 'name')).toEqual(['a'])
  })

  const replaced = (path: string, from: string | RegExp, to: string) =>
    changed((parts) => edited(parts, [path], (text) => text.replace(from, to)))
  const damaged = (what: string) => `planilla.xlsx is damaged: ${what}. Save it again as .xlsx.`
  test.each<[string, () => Uint8Array, string, Reading['mapping']?]>([
    [
      'a shared text that does not exist',
      () => replaced(sheet1, '<v>2</v>', '<v>77</v>'),
      damaged('row 2 refers to the text 77, which does not exist'),
    ],
    [
      'a logical value that is none',
      () => replaced(sheet1, 't="s"><v>2</v>', 't="b"><v>WAHR</v>'),
      damaged('row 2 has WAHR as a logical value'),
    ],
    [
      'no shared texts',
      () => without('xl/sharedStrings.xml'),
      damaged('row 1 refers to the text 0, which does not exist'),
    ],
    [
      'a style that does not exist',
      () => replaced(sheet1, 't="s"><v>2</v>', 's="99"><v>2</v>'),
      damaged('row 2 has the style 99, which does not exist'),
    ],
    [
      'the same cell twice',
      () => replaced(sheet1, 'r="B2"', 'r="A2"'),
      damaged('row 2 has the same cell twice'),
    ],
    ['a cell of another row', () => replaced(sheet1, 'r="B2"', 'r="B3"'), damaged('cell B3 is in row 2')],
    ['a sheet that is missing', () => without(sheet1), damaged('it does not contain its sheet Datos')],
    [
      'a binary workbook',
      () => replaced('_rels/.rels', 'workbook.xml', 'workbook.bin'),
      'planilla.xlsx is a zip archive, but not an .xlsx workbook. Save the sheet as .xlsx or as "CSV UTF-8".',
    ],
    [
      'nothing but charts',
      () => replaced('xl/_rels/workbook.xml.rels', '/worksheet"', '/chartsheet"'),
      'planilla.xlsx has no visible sheet with cells.',
    ],
    [
      'a chart that is asked for',
      () => replaced('xl/_rels/workbook.xml.rels', '/worksheet"', '/chartsheet"'),
      'planilla.xlsx: the sheet Datos has no cells; it is a chart, a dialog or a macro.',
      { sheet: 'Datos' },
    ],
  ])(
    'that are damaged or no table are refused with a true sentence: %s',
    async (_, bytes, sentence, mapping) => {
      expect(await valuesOf(bytes(), { kind: 'products', mapping }, 'name')).toBe(sentence)
    },
  )

  test('are said to be unreadable, not damaged, where their compression is unknown', async () => {
    const bytes = withEntries((list, at) => (list[at + 10] = 9))
    expect(await valuesOf(bytes, { kind: 'products' }, 'name')).toBe(
      'planilla.xlsx cannot be read: unsupported compression method: 9. Save it again as .xlsx.',
    )
  })

  /** Changes each entry of the list at the end of the archive. */
  function withEntries(change: (bytes: Buffer, at: number) => void): Buffer {
    const bytes = Buffer.from(plain())
    const mark = 'PK\u0001\u0002'
    for (let at = bytes.indexOf(mark); at !== -1; at = bytes.indexOf(mark, at + 4)) change(bytes, at)
    return bytes
  }

  test.each([1, 0x41])(
    'are said to have a password where the archive is encrypted (flags %i)',
    async (flags) => {
      const bytes = withEntries((list, at) => (list[at + 8] = flags))
      expect(await valuesOf(bytes, { kind: 'products' }, 'name')).toBe(
        'planilla.xlsx is protected by a password. Save it without the password.',
      )
    },
  )
})
