import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { strFromU8, strToU8, unzipSync, type Zippable, zipSync } from 'fflate'
import * as fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readDate, readNumber } from '../../../core/imports/cells/notation.ts'
import { checkFile, type FileCheck } from '../../../core/imports/check.ts'
import type { ImportFile } from '../../../core/imports/open-file.ts'
import { toSentence } from '../../../core/imports/problems.ts'
import { sizeLimits } from '../../../core/imports/source-file.ts'
import { writeResults } from '../../../core/imports/result-sheets.ts'
import { formatOf, parseFormat, renderNumber } from '../../../core/imports/workbook/number-format.ts'
import { bodiesOf, rowOf, temporaryFolder } from './csv-file.ts'
import { type Cell, copied, dayNumber, xlsxOf } from './xlsx-file.ts'

const seed = 20261122

const check = async (bytes: Uint8Array, file: Partial<ImportFile> & Pick<ImportFile, 'kind'>) =>
  checkFile(await copied(bytes, file))
const sentences = ({ problems }: FileCheck) => problems.map(toSentence)

const header = ['supplier', 'document', 'number', 'date', 'lines.1.name', 'lines.1.amount', 'tax_percent']
const day = { value: dayNumber('2026-03-25'), style: 'date' } as const
const row = (amount: Cell = 1500.5): Cell[] => ['sup_1', 7, 1, day, 'Asesoría', amount]
const body = (amount: string) =>
  `{"supplier":"sup_1","document":7,"number":1,"date":"2026-03-25","lines":[{"name":"Asesoría","amount":${amount}}]}`
const retentions = (amount: Cell, mapping = {}) =>
  copied(xlsxOf([{ rows: [header, row(amount)] }]), { kind: 'retentions', mapping })

describe('a workbook', () => {
  test.each([[{}], [{ locale: 'es-CL' }], [{ locale: 'en-US' }]])(
    'needs no locale for its numbers and dates, and any locale means the same: %j',
    async (mapping) => {
      for (const [amount, digits] of [
        [1500.5, '1500.5'],
        [45_890, '45890'],
        [-1.5, '-1.5'],
        ['0.30000000000000004', '0.3'],
        ['14500.500000000002', '14500.5'],
        [1e-7, '0.0000001'],
      ] as const) {
        const cell = { value: amount, style: 'money' } as const
        expect(await bodiesOf(await retentions(cell, mapping))).toEqual([body(digits)])
      }
      // It has three decimals, so that without a locale a zero is added to what would have two readings.
      const [written] = await bodiesOf(await retentions(45.123, mapping))
      expect(JSON.parse(written ?? '')).toEqual(JSON.parse(body('45.123')))
    },
  )

  test('has texts, truths, formulas with their results and rich texts', async () => {
    const rich = '<is><r><t>Ase</t></r><r><t>soría_x000D_</t></r><rPh><t>x</t></rPh></is>'
    const supplier = { xml: '<f>A1&amp;"x"</f><v>sup_1</v>', attributes: 't="str"' }
    const document = { value: 7, style: 'plain', formula: '3+4' } as const
    const name = { xml: rich, attributes: 't="inlineStr"' }
    const cells = [supplier, document, 1, day, name, 1, undefined, true]
    const bytes = xlsxOf([{ rows: [[...header, 'lines.1.exempt'], cells] }])
    expect(await bodiesOf(await copied(bytes, { kind: 'retentions' }))).toEqual([
      '{"supplier":"sup_1","document":7,"number":1,"date":"2026-03-25","lines":[{"name":"Asesoría\\r","amount":1,"exempt":true}]}',
    ])
  })

  test('has shared texts without what says how they are read aloud', async () => {
    const files = unzipSync(xlsxOf([{ rows: [header, row()] }]))
    const shared = strFromU8(files['xl/sharedStrings.xml'] ?? new Uint8Array())
    const spoken = shared.replace('Asesoría</t>', 'Asesoría</t><rPh sb="0" eb="1"><t>x</t></rPh>')
    expect(spoken).not.toBe(shared)
    const bytes = zipSync({ ...files, 'xl/sharedStrings.xml': strToU8(spoken) })
    expect(await bodiesOf(await copied(bytes, { kind: 'retentions' }))).toEqual([body('1500.5')])
  })

  test('keeps its row numbers over blank and missing rows, and names itself in messages', async () => {
    const bytes = xlsxOf([{ rows: [header, [], row('x'), row('y')], numbers: [1, 2, 5, 9] }])
    const { file, problems } = await check(bytes, { kind: 'retentions' })
    expect(file).toBe('planilla.xlsx')
    expect(problems.map(toSentence)).toEqual([
      'row 5, lines.1.amount: x is not a number',
      'row 9, lines.1.amount: y is not a number',
      'row 9, supplier, document, number: is the same retention as row 5',
    ])
  })

  test('may count its days from 1904', async () => {
    const from1904 = { value: day.value - 1462, style: 'date' } as const
    const bytes = xlsxOf([{ rows: [header, ['s', 7, 1, from1904, 'x', 1]] }], { date1904: true })
    expect(await bodiesOf(await copied(bytes, { kind: 'retentions' }))).toEqual([
      expect.stringContaining('"date":"2026-03-25"'),
    ])
  })

  test('is read from its first visible sheet, or from the one that is named', async () => {
    const sheets = [
      { name: 'Oculta', state: 'hidden', rows: [['x']] },
      { name: 'Marzo', rows: [header, row(1)] },
      { name: 'Abril', rows: [header, row(2)] },
    ] as const
    const bytes = xlsxOf(sheets)
    expect(await bodiesOf(await copied(bytes, { kind: 'retentions' }))).toEqual([body('1')])
    const file = { kind: 'retentions', mapping: { sheet: 'abril' } } as const
    expect(await bodiesOf(await copied(bytes, file))).toEqual([body('2')])
    await expect(copied(bytes, { ...file, mapping: { sheet: 'Abirl' } })).rejects.toMatchObject({
      message: 'planilla.xlsx has no sheet Abirl. Did you mean Abril?',
      withoutValues: 'planilla.xlsx has no sheet with the name in --sheet.',
    })
  })

  test('with 14,5% gets the suggestion 14,5; a day without its format gets the day', async () => {
    const percent = { value: 0.145, style: 'percent' } as const
    const bytes = xlsxOf([{ rows: [header, ['s', 7, 1, day.value, 'x', 1, percent]] }])
    expect(sentences(await check(bytes, { kind: 'retentions', mapping: { locale: 'es-CL' } }))).toEqual([
      'row 2, date: 46106 is the number of a day, as spreadsheets store dates; did you mean 25-03-2026?',
      'row 2, tax_percent: 14,5% has a percent sign; did you mean 14,5?',
    ])
  })

  test('with errors, uncalculated formulas, times and more digits than a spreadsheet keeps is refused, cell by cell', async () => {
    const error = { xml: '<f>VLOOKUP(1,2)</f><v>#N/A</v>', attributes: 't="e"' }
    const time = { value: day.value + 0.6, style: 'dateTime' } as const
    const cells = [error, 7, 12_345_678_901_234_567_000, time, { xml: '<f>B1</f>' }, '#¡REF!']
    const bytes = xlsxOf([{ rows: [header, cells] }])
    expect(sentences(await check(bytes, { kind: 'retentions', mapping: { locale: 'es-CL' } }))).toEqual([
      'row 2, supplier: #N/A is an error of the spreadsheet. Fix its formula, or enter the value',
      expect.stringMatching(/^row 2, number: 1,23456789012346E\+19 is in scientific notation/),
      'row 2, date: 25-03-2026 14:24:00 has a time, but the field is a date; did you mean 25-03-2026?',
      'row 2, lines.1.name: #NOT CALCULATED is a formula that no spreadsheet has calculated. Open the file in a spreadsheet and save it again',
      'row 2, lines.1.amount: #¡REF! is an error of the spreadsheet. Fix its formula, or enter the value',
    ])
  })

  test('with hidden rows is refused until they are shown or skipped', async () => {
    const bytes = xlsxOf([{ rows: [header, row(1), ['s', 7, 2, day, 'x', 2], []], hidden: [2, 4] }])
    await expect(copied(bytes, { kind: 'retentions' })).rejects.toThrow(
      'planilla.xlsx has hidden rows, perhaps because of a filter (rows 2). Show them in the spreadsheet to import them, or leave them out with --skip-rows hidden.',
    )
    const mapping = { skipRows: ['hidden'] as 'hidden'[] }
    const file = await copied(bytes, { kind: 'retentions', mapping })
    expect((await checkFile(file)).totals).toMatchObject({ rows: 1, sums: { 'lines.amount': '2' } })
  })

  test('with cells that are merged over rows is refused; a merged title is none of them', async () => {
    const rows = [['Retenciones'], header, row(1), row(2)]
    const mapping = { headerRow: 2 }
    const title = xlsxOf([{ rows: [['Retenciones'], header, row(1)], merges: ['A1:F1'] }])
    expect(await bodiesOf(await copied(title, { kind: 'retentions', mapping }))).toEqual([body('1')])
    await expect(
      copied(xlsxOf([{ rows, merges: ['A1:F1', 'A3:A4'] }]), { kind: 'retentions', mapping }),
    ).rejects.toThrow('planilla.xlsx has merged cells below its header (A3:A4). Unmerge them')
  })

  test('has rows and columns of styled cells to the ends of the sheet', async () => {
    const data = xlsxOf([{ rows: [header, row(1)] }])
    const [, rest = ''] =
      /<sheetData>(.*)<\/sheetData>/.exec(
        strFromU8(unzipSync(data)['xl/worksheets/sheet1.xml'] ?? new Uint8Array()),
      ) ?? []
    const wide = rest.replace('</row>', '<c r="AAA1" s="1"/><c r="XFD1" s="2"/></row>')
    const styled = Array.from(
      { length: 10_000 },
      (_, at) => `<row r="${at + 3}" s="1" customFormat="1"><c r="A${at + 3}" s="1"/></row>`,
    )
    const last = '<row r="1048576" s="1"><c r="A1048576" s="1"/></row>'
    const xml = `<worksheet><cols><col min="1" max="16384" style="1"/></cols><sheetData>${wide}${styled.join('')}${last}</sheetData></worksheet>`
    const bytes = zipSync({ ...unzipSync(data), 'xl/worksheets/sheet1.xml': strToU8(xml) })
    expect(await bodiesOf(await copied(bytes, { kind: 'retentions' }))).toEqual([body('1')])
  })

  test('that a spreadsheet made of a result file has its header in row 1, whatever the mapping of its source says', async () => {
    const shown = { value: 12.345, style: 'plain' } as const
    const rowOf = (number: number): Cell[] => ['s', 7, number, day, shown, 1500.5, 14.5, number, 'refused']
    const rows = [[...header, '_row', '_error'], rowOf(1), rowOf(2), rowOf(3)]
    const bytes = xlsxOf([{ rows, merges: ['A1:B1'] }])
    const bodies = await bodiesOf(await copied(bytes, { kind: 'retentions' }))
    expect(bodies).toMatchObject([1, 2, 3].map(() => expect.stringContaining('"name":"12.345"') as string))
    const mapping = { headerRow: 3, skipRows: [2] }
    expect(await bodiesOf(await copied(bytes, { kind: 'retentions', mapping }))).toEqual(bodies)
    const [head, ...others] = rows
    const hidden = xlsxOf([{ rows: [head ?? [], [], ...others], hidden: [3] }])
    const skipping = { headerRow: 4, skipRows: [4, 'hidden' as const] }
    expect(await bodiesOf(await copied(hidden, { kind: 'retentions', mapping: skipping }))).toEqual(
      bodies.slice(1),
    )
  })

  test('comes back as CSV whose rows mean the same under the same mapping, also behind guards', async () => {
    const rows: Cell[][] = [
      header,
      ['=cmd', 7, 1, day, '-x', 45.123, 14.5],
      ['sup 2', 7, 2, day, "'=1; 2", 1500.5],
      ['sup 3', 7, 3, day, 'a\nb', -45_890],
    ]
    for (const mapping of [{}, { locale: 'es-CL' }, { locale: 'en-US' }]) {
      const file = await copied(xlsxOf([{ rows }]), { kind: 'retentions', mapping })
      const folder = await temporaryFolder()
      const results = [2, 3, 4].map((row) => rowOf(row, 'rejected', { error: 'no' }))
      await writeResults({ ...file, results, folder })
      const to = join(folder, 'rejected.csv')
      const again = { ...file, path: to }
      expect(await bodiesOf(again)).toEqual(await bodiesOf(file))
      expect(await readFile(to, 'utf8')).toMatch(/^\ufeffsupplier[,;]document/)
    }
  })
})

describe('a workbook that is hostile or damaged', () => {
  const sheet = (xml: string) => ({ 'xl/worksheets/sheet1.xml': strToU8(xml) })
  const rows = (xml: string) => sheet(`<worksheet><sheetData>${xml}</sheetData></worksheet>`)
  const bomb = strToU8(`<worksheet><sheetData>${' '.repeat(2_000_000)}`)
  test.each<[string, Zippable | Uint8Array, RegExp]>([
    ['no archive behind its first bytes', strToU8('PK\u0003\u0004 and nothing'), /is damaged: .*Save it/],
    [
      'no workbook inside',
      xlsxOf([], { parts: { 'xl/workbook.xml': strToU8('') } }),
      /is damaged|no visible/,
    ],
    ['no sheet inside', xlsxOf([]), /has no visible sheet/],
    ['XML that ends early', rows('<row r="1">').valueOf() as Zippable, /is damaged|has a header/],
    [
      'a document type with entities',
      sheet('<!DOCTYPE x [<!ENTITY a "b">]><worksheet>&a;</worksheet>'),
      /it has a document type/,
    ],
    ['an entity of its own', rows('<row r="1"><c t="str"><v>&a;</v></c></row>'), /undefined entity/],
    ['a text of two megabytes', { 'xl/worksheets/sheet1.xml': bomb }, /longer than a million characters/],
    ['rows out of order', rows('<row r="3"/><row r="2"/>'), /row 2 follows row 3/],
    ['a row beyond the last', rows('<row r="9999999"/>'), /row 9999999 follows row 0/],
    [
      'a cell beyond 2,000 columns',
      rows('<row r="1"><c r="XFD1"><v>1</v></c></row>'),
      /more than 2,000 columns/,
    ],
  ])('with %s is refused with a sentence', async (_, parts, sentence) => {
    const bytes = parts instanceof Uint8Array ? parts : xlsxOf([{ rows: [header, row()] }], { parts })
    await expect(copied(bytes, { kind: 'retentions' })).rejects.toMatchObject({
      name: 'InvalidFile',
      message: expect.stringMatching(sentence) as string,
    })
  })

  test('does not grow beyond the largest table by one long text in many cells', async () => {
    const { table } = sizeLimits
    expect(table.megabytes).toBe(1024)
    onTestFinished(() => void Object.assign(table, { megabytes: 1024 }))
    Object.assign(table, { megabytes: 50 })
    const text = 'x'.repeat(1_600)
    const cells = '<c t="s"><v>0</v></c>'.repeat(2_000)
    const xml = `<worksheet><sheetData>${`<row>${cells}</row>`.repeat(20)}</sheetData></worksheet>`
    const parts = {
      'xl/worksheets/sheet1.xml': strToU8(xml),
      'xl/sharedStrings.xml': strToU8(`<sst><si><t>${text}</t></si></sst>`),
    }
    await expect(copied(xlsxOf([{ rows: [] }], { parts }), { kind: 'retentions' })).rejects.toThrow(
      'its cells have more than 1 GB',
    )
  })
})

test('a number of a workbook is read as the number that the spreadsheet shows, under any convention', () => {
  const conventions = fc.constantFrom({}, { decimal: ',' as const }, { decimal: '.' as const })
  const value = fc.tuple(fc.integer({ min: -(10 ** 9), max: 10 ** 9 }), fc.integer({ min: 0, max: 5 }))
  fc.assert(
    fc.property(value, conventions, ([whole, places], given) => {
      const shown = whole / 10 ** places
      // Arithmetic leaves noise behind the digits that are shown.
      for (const stored of [shown, shown * (1 + Number.EPSILON)]) {
        const text = renderNumber(stored, parseFormat('General'), 'number', { ...given, is1904: false })
        const reading = readNumber(text, 'decimal' in given ? given.decimal : undefined)
        expect(reading).toHaveProperty('value')
        expect('value' in reading && Number(reading.value)).toBe(Number(shown.toPrecision(15)) + 0)
      }
    }),
    { seed },
  )
})

test('every day of a workbook is read as that day, in any order', () => {
  const day = parseFormat('yyyy-mm-dd')
  const orders = fc.constantFrom('dmy', 'mdy', 'ymd', undefined)
  fc.assert(
    fc.property(fc.integer({ min: 61, max: 2_958_465 }), orders, (number, dates) => {
      const date = new Date(Date.UTC(1899, 11, 30) + number * 86_400_000).toISOString().slice(0, 10)
      const text = renderNumber(number, day, 'date', { ...(dates && { dates }), is1904: false })
      expect(readDate(text, dates)).toEqual({ value: date })
    }),
    { seed },
  )
  expect(renderNumber(1, day, 'date', { is1904: false })).toBe('1900-01-01')
  expect(renderNumber(59, day, 'date', { is1904: false })).toBe('1900-02-28')
  expect(renderNumber(0, day, 'date', { is1904: true })).toBe('1904-01-01')
  expect(renderNumber(0.75, parseFormat('hh:mm'), 'date', { is1904: false })).toBe('18:00:00')
})

test.each([
  [22, undefined, 'dateTime'],
  [10, undefined, 'percent'],
  [2, undefined, 'number'],
  [164, 'mm:ss', 'time'],
  [164, '[Red]-#,##0;[Blue]0%', 'number'],
  [164, '_-[$$-340A]* #,##0_-', 'number'],
  [164, 'yyyy\\-mm\\-dd\\ hh:mm', 'dateTime'],
])('the format %i %s shows a %s', (id, code, format) => {
  expect(formatOf(id, new Map(code === undefined ? [] : [[id, code]])).sections[0].format).toBe(format)
})
