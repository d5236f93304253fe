import { type Zippable, strToU8, zipSync } from 'fflate'
import { readMapping } from '../../../core/imports/mapping/mapping.ts'
import type { ImportFile } from '../../../core/imports/open-file.ts'
import { fileOf, storeInput } from './csv-file.ts'

/** Copies a workbook as an import does; gives the file that is read. */
export async function copied(
  bytes: Uint8Array,
  { kind, mapping = {}, ...file }: Partial<ImportFile> & Pick<ImportFile, 'kind'>,
): Promise<ImportFile> {
  const path = await fileOf(bytes, 'planilla.xlsx')
  const input = await storeInput({ ...file, kind, file: path, mapping })
  return { ...file, kind, path: input.path, mapping: await readMapping(input.mapping) }
}

/** A text, a number, a truth, or XML of a cell's own: `<c r="A1" ...>` is completed with its place. */
export type Cell =
  | string
  | number
  | boolean
  | undefined
  | { value: number | string; style: Style; formula?: string }
  | { xml: string; attributes?: string }

/** Styles in the order of the workbook's formats. */
export const styles = {
  plain: 'General',
  date: 'dd\\-mm\\-yyyy',
  percent: '0.0%',
  money: '#,##0.00\\ "días"',
  time: 'hh:mm',
  dateTime: '[$-340A]d mmm yyyy hh:mm',
} as const
type Style = keyof typeof styles

interface SheetOf {
  name?: string
  state?: 'hidden'
  rows: readonly (readonly Cell[])[]
  hidden?: readonly number[]
  /** Row numbers, where they are not 1, 2, 3. */
  numbers?: readonly number[]
  merges?: readonly string[]
  /** XML before the rows: `<cols>...</cols>`. */
  before?: string
}

export const escapeXml = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')

const relationships = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'

/** A workbook as a spreadsheet writes it: texts are shared, dates are numbers with a format. */
export function xlsxOf(
  sheets: readonly SheetOf[],
  {
    date1904 = false,
    calcPr = '<calcPr calcId="191029"/>',
    formats = Object.values(styles),
    parts = {},
  }: { date1904?: boolean; calcPr?: string; formats?: readonly string[]; parts?: Zippable } = {},
): Uint8Array {
  const strings: string[] = []
  const files = Object.fromEntries(
    sheets.map((sheet, index) => [`xl/worksheets/sheet${index + 1}.xml`, sheetXml(sheet, strings)]),
  )
  const xml: Record<string, string> = {
    '[Content_Types].xml': '<Types/>',
    'xl/workbook.xml': `<workbook xmlns:r="${relationships}"><workbookPr${date1904 ? ' date1904="1"' : ''}/><sheets>${sheets
      .map(
        ({ name = 'Hoja1', state }, at) =>
          `<sheet name="${escapeXml(name)}" sheetId="${at + 1}"${state === undefined ? '' : ` state="${state}"`} r:id="rId${at + 1}"/>`,
      )
      .join('')}</sheets>${calcPr}</workbook>`,
    '_rels/.rels': `<Relationships><Relationship Id="rId1" Type="${relationships}/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
    'xl/_rels/workbook.xml.rels': `<Relationships>${[
      ...sheets.map((_, at) => ['worksheet', `worksheets/sheet${at + 1}.xml`]),
      ['styles', 'styles.xml'],
      ['sharedStrings', 'sharedStrings.xml'],
    ]
      .map(
        ([type, target], at) =>
          `<Relationship Id="rId${at + 1}" Type="${relationships}/${type}" Target="${target}"/>`,
      )
      .join('')}</Relationships>`,
    'xl/styles.xml': `<styleSheet><numFmts>${formats
      .map((code, at) => `<numFmt numFmtId="${164 + at}" formatCode="${escapeXml(code)}"/>`)
      .join('')}</numFmts><cellStyleXfs><xf numFmtId="9"/></cellStyleXfs><cellXfs>${formats
      .map((_, at) => `<xf numFmtId="${164 + at}"/>`)
      .join('')}</cellXfs></styleSheet>`,
    ...files,
  }
  xml['xl/sharedStrings.xml'] = `<sst>${strings.join('')}</sst>`
  const zipped = Object.fromEntries(
    Object.entries(xml).map(([path, text]) => [path, strToU8(`<?xml version="1.0"?>\n${text}`)]),
  )
  return zipSync({ ...zipped, ...parts })
}

function sheetXml(
  { rows, hidden = [], numbers, merges = [], before = '' }: SheetOf,
  strings: string[],
): string {
  const all = rows.map((cells, at) => {
    const row = numbers?.[at] ?? at + 1
    const inner = cells.map((cell, column) => cellXml(cell, `${letterOf(column)}${row}`, strings)).join('')
    return `<row r="${row}"${hidden.includes(row) ? ' hidden="1"' : ''}>${inner}</row>`
  })
  const merged =
    merges.length === 0
      ? ''
      : `<mergeCells>${merges.map((ref) => `<mergeCell ref="${ref}"/>`).join('')}</mergeCells>`
  return `<worksheet>${before}<sheetData>${all.join('')}</sheetData>${merged}</worksheet>`
}

function letterOf(column: number): string {
  const last = String.fromCharCode(65 + (column % 26))
  return column < 26 ? last : letterOf(Math.floor(column / 26) - 1) + last
}

function cellXml(cell: Cell, place: string, strings: string[]): string {
  if (cell === undefined) return ''
  if (typeof cell === 'number') return `<c r="${place}"><v>${cell}</v></c>`
  if (typeof cell === 'boolean') return `<c r="${place}" t="b"><v>${cell ? 1 : 0}</v></c>`
  if (typeof cell === 'string') {
    strings.push(`<si><t xml:space="preserve">${escapeXml(cell)}</t></si>`)
    return `<c r="${place}" t="s"><v>${strings.length - 1}</v></c>`
  }
  if ('xml' in cell) return `<c r="${place}" ${cell.attributes ?? ''}>${cell.xml}</c>`
  const style = Object.keys(styles).indexOf(cell.style)
  const formula = cell.formula === undefined ? '' : `<f>${escapeXml(cell.formula)}</f>`
  return `<c r="${place}" s="${style}">${formula}<v>${cell.value}</v></c>`
}

/** The number by which a spreadsheet stores a day. */
export const dayNumber = (date: string): number =>
  (Date.parse(`${date}T00:00:00Z`) - Date.UTC(1899, 11, 30)) / 86_400_000
