import { strToU8 } from 'fflate'
import { describe, expect, test } from 'vitest'
import type { Mapping } from '../../../core/imports/mapping/mapping.ts'
import {
  type ColumnUse,
  formatOf,
  parseFormat,
  renderNumber,
} from '../../../core/imports/workbook/number-format.ts'
import { bodiesOf, fileOf, problemsOf } from './csv-file.ts'
import { type Cell, copied, dayNumber, escapeXml, xlsxOf } from './xlsx-file.ts'

const shown = (value: number, code: string, use: ColumnUse = 'text', conventions = {}) =>
  renderNumber(value, parseFormat(code), use, { ...conventions, is1904: false })

describe('a number in a column of text', () => {
  test.each<[number, string, string]>([
    [123, '00000000', '00000123'],
    [123456789, '00000000', '123456789'],
    [12.345, 'General', '12.345'],
    [-7, 'General', '-7'],
    [1e-7, 'General', '0.0000001'],
    [7801234567890, 'General', '7801234567890'],
    [0.1 + 0.2, 'General', '0.3'],
    [123, '@', '123'],
    [12.6, '0', '13'],
    [2.5, '0', '3'],
    [12, '"Folio "0', 'Folio 12'],
    [12, '[Red][$CLP-340A] 0', 'CLP 12'],
    [-5, '0;(0)', '(5)'],
    [-5, '0', '-5'],
    [0, '0;-0;"cero"', 'cero'],
    [12, '_-* #0_-;-* #0_-;_-* "-"_-;_-@_-', '12'],
  ])('%d with the format %s is %s, as the sheet shows it', (value, code, text) => {
    expect(shown(value, code)).toBe(text)
  })

  test('has the decimal mark of its locale, which a format without decimals does not show', () => {
    expect(shown(12.5, 'General', 'text', { decimal: ',' })).toBe('12,5')
    expect(shown(12.5, 'General')).toBe('12.5')
  })

  test.each<[number, string, string]>([
    [46_106, 'dd/mm/yyyy', '#DATE 2026-03-25'],
    [46_106.5, 'yyyy\\-mm\\-dd hh:mm', '#DATE 2026-03-25 12:00:00'],
    [46_106, 'mmm-yy', '#DATE 2026-03-25'],
    [0.5, 'h:mm AM/PM', '#DATE 12:00:00'],
    [1.5, '[h]:mm', '#DATE 1.5'],
    [46_106, 'e/m/d', '#DATE 2026-03-25'],
    [1 / 3, 'General', '#FORMATTED 0.333333333333333'],
    [12_345, '0.00E+00', '#FORMATTED 12345'],
    [0.5, '# ?/?', '#FORMATTED 0.5'],
    [12, '[DBNum1]0', '#FORMATTED 12'],
    [12, '[<=99]00;0', '#FORMATTED 12'],
    [0.145, '0.0%', '#FORMATTED 0.145'],
    [1_500_000, '0.0,, "MM"', '#FORMATTED 1500000'],
    [0, '0;-0;"-"??', '#FORMATTED 0'],
    [999, '#,##0', '#FORMATTED 999'],
    [1.5, '0.00', '#FORMATTED 1.5'],
    [761234567, '00"."000"."000"-"0', '#FORMATTED 761234567'],
    [12, '0;;', '12'],
    [-12, '0;;', '#NOT SHOWN -12'],
    [12, ';;;', '#NOT SHOWN 12'],
    [0, '#', '#NOT SHOWN 0'],
  ])(
    '%d with the format %s is refused where the sheet shows what cannot be known: %s',
    (value, code, text) => {
      expect(shown(value, code)).toBe(text)
    },
  )

  test('is refused where its built-in format depends on the language', () => {
    const at = (id: number) => renderNumber(12, formatOf(id, new Map()), 'text', { is1904: false })
    expect([1, 49].map(at)).toEqual(['12', '12'])
    expect([5, 14, 44].map(at)).toEqual(['#FORMATTED 12', '#DATE 1900-01-12', '#FORMATTED 12'])
  })
})

describe('a number in a column of numbers', () => {
  test.each<[number, string]>([
    [0.1 + 0.2, '0.3'],
    [14_500.500000000002, '14500.5'],
    [1 / 3, '0.333333333333333'],
    [1_500_000_000 / 1.19, '1260504201.68067'],
    [12_345_678_901_234.5, '12345678901234.5'],
    [12_345_678_901_234, '12345678901234'],
    [-99_999_999_999_999, '-99999999999999'],
  ])('%d has only the noise of arithmetic after its 15 digits: %s', (value, text) => {
    expect(shown(value, 'General', 'number')).toBe(text)
  })

  test.each([
    12_345_678_901_234.56,
    1_234_567_890_123.456,
    10_000_000_000_000.01,
    999_999_999_999.9994,
    123_456_789_012.34 + 2 ** -16,
  ])('%d would lose digits, and is refused with all of them', (value) => {
    expect(shown(value, '#,##0.00', 'number')).toBe(`#DIGITS ${value}`)
  })

  test.each(['MXN #,##0.00', 'US$ #,##0.00', 'S/ #,##0', '#,##0 días'])(
    'is not a date where words stand in its format without quotes: %s',
    (code) => {
      expect(shown(1500, code, 'number')).toBe('1500')
      expect(shown(1500, code)).toBe('#FORMATTED 1500')
    },
  )

  test('is refused if its cell shows a date, a time or nothing', () => {
    expect(shown(1500, 'dd-mm-yyyy', 'number')).toBe('#DATE 1904-02-08')
    expect(shown(0, 'dd-mm-yyyy', 'number')).toBe('#DATE 0')
    expect(shown(1.5, '[h]:mm', 'number')).toBe('#DATE 1.5')
    expect(shown(1500, ';;;', 'number')).toBe('#NOT SHOWN 1500')
    expect(shown(0, '#,##0;-#,##0;', 'number')).toBe('0')
  })
})

describe('the cells of a sheet', () => {
  const formats = ['General', 'dd-mm-yyyy', '"SKU-"@', ';;;', '_-@_-']
  const styled = (style: number, xml: string, type = 'n') => ({ xml, attributes: `s="${style}" t="${type}"` })
  const addon = async (sku: Cell, mapping: Mapping = {}) => {
    const header = ['name', 'description', 'currency', 'amount', 'sku']
    const bytes = xlsxOf([{ rows: [header, ['Soporte', 'x', 'CLP', 100, sku]] }], { formats })
    const file = await copied(bytes, { kind: 'addons', mapping })
    const problems = await problemsOf(file)
    return problems[0] ?? (JSON.parse((await bodiesOf(file))[0] ?? '') as { sku: unknown }).sku
  }

  test.each<[Cell, unknown]>([
    [styled(2, '<v>0012</v>', 'str'), 'SKU-0012'],
    [styled(4, '<v>0012</v>', 'str'), '0012'],
    [
      styled(3, '<v>0012</v>', 'str'),
      expect.stringContaining('sku: #NOT SHOWN 0012 is hidden by the format of its cell'),
    ],
    [true, expect.stringContaining('sku: #TRUTH true is a logical value, but the column has texts')],
    [
      styled(1, '<v>46106</v>'),
      expect.stringContaining('sku: #DATE 2026-03-25 is a date or time, but the column has none'),
    ],
    [
      styled(0, '<v>2026-03-25T00:00:00Z</v>', 'd'),
      expect.stringContaining('sku: #DATE 2026-03-25 is a date'),
    ],
  ])('%j in a column of text is what the sheet shows, or refused', async (cell, expected) => {
    expect(await addon(cell)).toEqual(expected)
  })

  test('of a mapped or translated column are read as its field needs them', async () => {
    const header = ['RUT', 'document', 'Folio', 'Fecha', 'lines.1.name', 'lines.1.amount']
    const cells = [styled(1, '<v>123</v>'), 7, 5, styled(2, '<v>46106</v>'), 'x', 45.123]
    const parts = { 'xl/styles.xml': styles(['00000000', 'dd-mm-yyyy']) }
    const mapping = { columns: { RUT: 'supplier', Folio: 'number', Fecha: 'date' } }
    const file = await copied(xlsxOf([{ rows: [header, cells] }], { parts }), { kind: 'retentions', mapping })
    expect(await bodiesOf(file)).toEqual([
      '{"supplier":"00000123","document":7,"number":5,"date":"2026-03-25","lines":[{"name":"x","amount":45.1230}]}',
    ])
  })

  test('of a translated column are looked up as the sheets show them, also for a field of numbers', async () => {
    const parts = { 'xl/styles.xml': styles(['000', '0.00']) }
    const types = xlsxOf([{ rows: [[styled(1, '<v>7</v>'), 33]] }], { parts })
    const mapping = {
      columns: { Tipo: 'document' },
      lookups: { document: await fileOf(types, 'tipos.xlsx') },
    }
    const header = ['supplier', 'Tipo', 'number', 'date', 'lines.1.name']
    const rowOf = (style: number): Cell[] => ['s', styled(style, '<v>7</v>'), 1, '2026-03-25', 'x']
    const read = async (style: number) =>
      copied(xlsxOf([{ rows: [header, rowOf(style)] }], { parts }), { kind: 'retentions', mapping })
    expect(await bodiesOf(await read(1))).toEqual([expect.stringContaining('"document":33')])
    expect(await problemsOf(await read(2))).toEqual([
      expect.stringContaining('row 2, Tipo: #FORMATTED 7 is a number that the sheet shows'),
    ])
  })

  test('have their own formats, whatever tables and conditional formats define under the same numbers', async () => {
    const dxfs =
      '<dxfs count="2"><dxf><numFmt numFmtId="164" formatCode="dd/mm/yyyy"/></dxf><dxf><numFmt numFmtId="14" formatCode="0.00%"/></dxf></dxfs>'
    for (const order of [(own: string) => own + dxfs, (own: string) => dxfs + own]) {
      const own =
        '<numFmts><numFmt numFmtId="164" formatCode="0"/></numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="14"/></cellXfs>'
      const parts = { 'xl/styles.xml': strToU8(`<styleSheet>${order(own)}</styleSheet>`) }
      const header = ['supplier', 'document', 'number', 'date', 'lines.1.name', 'lines.1.amount']
      const [number, date] = [styled(1, '<v>46106</v>'), styled(2, '<v>46106</v>')]
      const cells = [number, 7, 5, date, 'x', number]
      const file = await copied(xlsxOf([{ rows: [header, cells] }], { parts }), { kind: 'retentions' })
      expect(await bodiesOf(file)).toEqual([
        '{"supplier":"46106","document":7,"number":5,"date":"2026-03-25","lines":[{"name":"x","amount":46106}]}',
      ])
    }
  })
})

const styles = (codes: readonly string[]) =>
  strToU8(
    `<styleSheet><numFmts>${codes.map((code, at) => `<numFmt numFmtId="${164 + at}" formatCode="${escapeXml(code)}"/>`).join('')}</numFmts><cellXfs><xf numFmtId="0"/>${codes.map((_, at) => `<xf numFmtId="${164 + at}"/>`).join('')}</cellXfs></styleSheet>`,
  )

describe('real dates beside texts', () => {
  const header = ['supplier', 'document', 'number', 'date', 'lines.1.name']
  const real = (day: string) => ({ value: dayNumber(day), style: 'date' }) as const
  const iso = (day: string) => ({ xml: `<v>${day}T00:00:00</v>`, attributes: 't="d"' })
  const dates = async (cells: Cell[], mapping: Mapping = {}) => {
    const rows = [header, ...cells.map((cell, at): Cell[] => ['s', 7, at + 1, cell, 'x'])]
    const read = async () => bodiesOf(await copied(xlsxOf([{ rows }]), { kind: 'retentions', mapping }))
    return await read().then(
      (bodies) => bodies.map((body) => (JSON.parse(body) as { date: string }).date),
      (error: Error) => error.message,
    )
  }
  const doubt = expect.stringContaining('row 2 could mean 2026-03-04 or 2026-04-03') as unknown

  test.each<[string, Cell[], unknown]>([
    ['a text with the day first', [real('2026-03-04'), '25/03/2026'], doubt],
    ['a text with the month first', [real('2026-03-04'), '03/25/2026'], doubt],
    ['a text with dots', [real('2026-03-04'), '25.3.2026'], doubt],
    ['a text with a time', [real('2026-03-04'), '25-03-2026 14:00'], doubt],
    ['a text with a short year', [real('2026-03-04'), '25-03-26'], doubt],
    ['dates in ISO 8601', [iso('2026-03-04'), '25/03/2026'], doubt],
    [
      'a date whose day is not a month',
      [real('2026-03-04'), real('2026-03-13'), '25/03/2026'],
      ['2026-03-04', '2026-03-13', '2026-03-25'],
    ],
    ['a date that is the same swapped', [real('2026-03-03'), '25/03/2026'], ['2026-03-03', '2026-03-25']],
    ['a text with the year first', [real('2026-03-04'), '2026-03-25'], ['2026-03-04', '2026-03-25']],
    ['no text', [real('2026-03-04'), real('2026-05-06')], ['2026-03-04', '2026-05-06']],
    ['no real date', ['25/03/2026', '04/03/2026'], expect.stringContaining('04/03/2026 could mean')],
  ])('raise a doubt only where they could be swapped: %s', async (_, cells, expected) => {
    expect(await dates(cells)).toEqual(expected)
  })

  test('are right where realDates says so, and a locale settles no doubt', async () => {
    const cells = [iso('2026-03-04'), real('2026-05-06'), '25/03/2026']
    const refusal = await dates(cells, { locale: 'es-CL' })
    expect(refusal).toEqual(doubt)
    expect(refusal).toContain(
      'row 4 has the text 25/03/2026, but all 2 real dates could have day and month swapped',
    )
    expect(await dates(cells, { realDates: true })).toEqual(['2026-03-04', '2026-05-06', '2026-03-25'])
  })

  test('in skipped rows raise no doubt', async () => {
    expect(await dates([real('2026-03-04'), '25/03/2026'], { skipRows: [3] })).toEqual(['2026-03-04'])
  })
})
