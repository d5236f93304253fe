import { posix } from 'node:path'
import { nearestName } from '../../tables/nearest-name.ts'
import { InvalidFile, InvalidMapping, quote, say } from '../errors.ts'
import { type CellFormat, formatOf } from './number-format.ts'
import type { Archive, Attributes, XmlEvent } from './parts.ts'

/** What the cells of a sheet refer to. */
export interface Workbook {
  sheets: readonly Sheet[]
  /** Dates count from 1904 instead of 1900. */
  is1904: boolean
  /** The number format of each cell style. */
  formats: readonly CellFormat[]
  /**
   * Whether the results of formulas are there: `asked` if spreadsheets shall calculate them when they open
   * the workbook, `unknown` if it says nothing.
   */
  calculation: 'done' | 'asked' | 'unknown'
  /** Cell texts, each stored once. */
  strings: readonly string[]
}

export interface Sheet {
  name: string
  isHidden: boolean
  /** As the type of its relationship: a chart has no rows. */
  type: 'worksheet' | 'chartsheet' | 'dialogsheet' | 'xlMacrosheet' | (string & {})
  /** In the archive; undefined if the workbook names no part. */
  path: string | undefined
}

const megabyte = 1024 ** 2
/** Limit for parts held in memory. */
const mostPartBytes = 64 * megabyte
const mostStringBytes = 96 * megabyte

/** The most characters that a spreadsheet allows in a cell. */
export const longestCell = 32_767

/** @throws {InvalidFile} the archive is not an .xlsx workbook */
export async function readWorkbook(archive: Archive, name: string): Promise<Workbook> {
  const root = await readRelationships('', archive)
  const main = root.find(({ type }) => type === 'officeDocument')?.path ?? 'xl/workbook.xml'
  if (!archive.has(main) || !main.toLowerCase().endsWith('.xml'))
    throw new InvalidFile(
      `${name} is a zip archive, but not an .xlsx workbook. Save the sheet as .xlsx or as "CSV UTF-8".`,
    )
  const related = await readRelationships(main, archive)
  const read = (type: string, mostBytes: number): AsyncIterable<XmlEvent[]> | [] => {
    const path =
      related.find((part) => part.type === type)?.path ?? posix.join(posix.dirname(main), `${type}.xml`)
    return archive.has(path) ? archive.read(path, mostBytes) : []
  }
  return {
    ...(await readMain(archive.read(main, mostPartBytes), related)),
    formats: await readFormats(read('styles', mostPartBytes)),
    strings: await readStrings(read('sharedStrings', mostStringBytes)),
  }
}

/** Charts, dialogs and macros are sheets, too. */
export const hasRows = ({ type }: Sheet): boolean => type === 'worksheet' || type === ''

/**
 * The sheet to read: the named one, or else the first visible one.
 * @throws {InvalidFile}
 * @throws {InvalidMapping} there is no sheet with this name
 */
export function findSheet(sheets: readonly Sheet[], name: string, asked: string | undefined): Sheet {
  const visible = sheets.filter((sheet) => !sheet.isHidden && hasRows(sheet))
  if (asked === undefined) {
    const [first] = visible
    if (first !== undefined) return first
    throw new InvalidFile(`${name} has no visible sheet with cells.`)
  }
  const found = sheets.find((sheet) => sheet.name.trim().toLowerCase() === asked.trim().toLowerCase())
  if (found !== undefined && hasRows(found)) return found
  if (found !== undefined)
    throw new InvalidFile(
      `${name}: the sheet ${found.name} has no cells; it is a chart, a dialog or a macro.`,
    )
  const names = visible.map((sheet) => sheet.name)
  const near = nearestName(asked, names)
  const suggestion = near === undefined ? `Its sheets are ${names.join(', ')}.` : `Did you mean ${near}?`
  throw new InvalidMapping(
    say`${name} has no sheet ${quote(asked, 'with the name in --sheet')}. ${quote(suggestion, '')}`,
  )
}

/** A part that another one names. `type`: the end of its URI, which is the same in the strict namespace. */
interface Relationship {
  id: string
  type: string
  path: string
}

/** The parts that one part names; '' is the package. */
async function readRelationships(part: string, archive: Archive): Promise<Relationship[]> {
  const { dir, base } = posix.parse(part)
  const path = posix.join(dir, '_rels', `${base}.rels`)
  const found: Relationship[] = []
  if (!archive.has(path)) return found
  for await (const events of archive.read(path, mostPartBytes))
    for (const { element, attributes } of events) {
      if (element !== 'Relationship' || attributes === undefined) continue
      const { Id = '', Type = '', Target = '', TargetMode } = attributes
      if (TargetMode === 'External') continue
      const named = posix.resolve('/', dir, Target.replaceAll('\\', '/')).slice(1)
      found.push({ id: Id, type: posix.basename(Type), path: archive.has(named) ? named : decodePath(named) })
    }
  return found
}

function decodePath(path: string): string {
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}

async function readMain(
  parts: AsyncIterable<XmlEvent[]>,
  related: readonly Relationship[],
): Promise<Pick<Workbook, 'sheets' | 'is1904' | 'calculation'>> {
  const sheets: Sheet[] = []
  const prefixes: string[] = ['r']
  let is1904 = false
  let calculation: Workbook['calculation'] = 'unknown'
  const open = (element: string, attributes: Attributes) => {
    for (const [name, value] of Object.entries(attributes))
      if (name.startsWith('xmlns:') && /\/officeDocument\/(\d+\/)?relationships$/.test(value))
        prefixes.unshift(name.slice(6))
    if (element === 'workbookPr') is1904 = isTrue(attributes['date1904'])
    if (element === 'calcPr') {
      const { fullCalcOnLoad, calcCompleted = '1', calcId } = attributes
      // Apache POI asks with the id of no spreadsheet.
      const isAsked = isTrue(fullCalcOnLoad) || !isTrue(calcCompleted) || calcId === '0'
      calculation = isAsked ? 'asked' : 'done'
    }
    if (element !== 'sheet') return
    const id = prefixes.map((prefix) => attributes[`${prefix}:id`]).find((value) => value !== undefined)
    const part = related.find((one) => one.id === id)
    const isHidden = (attributes['state'] ?? 'visible') !== 'visible'
    sheets.push({ name: attributes['name'] ?? '', isHidden, type: part?.type ?? '', path: part?.path })
  }
  for await (const events of parts)
    for (const { element, attributes } of events) if (attributes !== undefined) open(element, attributes)
  return { sheets, is1904, calculation }
}

async function readFormats(parts: AsyncIterable<XmlEvent[]> | []): Promise<CellFormat[]> {
  const own = new Map<number, string>()
  const known = new Map<number, CellFormat>()
  const formats: CellFormat[] = []
  // Tables and conditional formats have formats with ids of their own, in a list of their own.
  let list = ''
  for await (const events of parts)
    for (const { element, attributes } of events) {
      if (attributes === undefined) {
        if (element === list) list = ''
        continue
      }
      if (element === 'numFmts' || element === 'cellXfs' || element === 'dxfs') list = element
      const id = Number(attributes['numFmtId'] ?? 0)
      if (element === 'numFmt' && list === 'numFmts') own.set(id, attributes['formatCode'] ?? '')
      if (element !== 'xf' || list !== 'cellXfs') continue
      const format = known.get(id) ?? formatOf(id, own)
      known.set(id, format)
      formats.push(format)
    }
  return formats
}

/** The texts of cells: all runs of each, without phonetic text. */
async function readStrings(parts: AsyncIterable<XmlEvent[]> | []): Promise<string[]> {
  const strings: string[] = []
  let text = ''
  let isPhonetic = false
  for await (const events of parts)
    for (const { element, text: own } of events) {
      if (element === 'rPh') isPhonetic = own === undefined
      else if (element === 't' && !isPhonetic) text += own ?? ''
      else if (element === 'si' && own === undefined) text = ''
      else if (element === 'si') strings.push(unescapeText(text))
    }
  return strings
}

export const isTrue = (text: string | undefined): boolean => text === '1' || text === 'true'

/** Decodes characters that XML does not allow, written as `_x000D_`. */
export const unescapeText = (text: string): string =>
  text
    .slice(0, longestCell)
    .replaceAll(/_x([0-9a-f]{4})_/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
