import { posix } from 'node:path'
import { UnreadableFileError } from '../errors.ts'
import { type Archive, type Attributes, type ElementHandler, readXml } from './parts.ts'
import { type CellFormat, formatOf } from './number-format.ts'

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
const mostStringBytes = 256 * megabyte
const mostStringLetters = 64 * 1_000_000

/** The most characters that a spreadsheet allows in a cell. */
export const longestCell = 32_767

/** @throws {UnreadableFileError} the archive is not an .xlsx workbook */
export async function readWorkbook(archive: Archive, name: string): Promise<Workbook> {
  const read: Read = (path, handler, most = mostPartBytes) =>
    readXml(archive.read(path, most), `${name} (${path})`, handler)
  const root = await readRelationships('', { archive, read })
  const main = root.find(({ type }) => type === 'officeDocument')?.path ?? 'xl/workbook.xml'
  if (!archive.has(main) || !main.toLowerCase().endsWith('.xml'))
    throw new UnreadableFileError(
      `${name} is a zip archive, but not an .xlsx workbook. Save the sheet as .xlsx or as "CSV UTF-8".`,
    )
  const related = await readRelationships(main, { archive, read })
  const partOf = (type: string) => {
    const path =
      related.find((part) => part.type === type)?.path ?? posix.join(posix.dirname(main), `${type}.xml`)
    return archive.has(path) ? path : undefined
  }
  const styles = partOf('styles')
  const strings = partOf('sharedStrings')
  return {
    ...(await readMain(read(main, toElements), related)),
    formats: styles === undefined ? [] : await readFormats(read, styles),
    strings:
      strings === undefined
        ? []
        : await readStrings(read(strings, collectTexts('si'), mostStringBytes), name),
  }
}

type Read = <T>(
  path: string,
  handler: (emit: (item: T) => void) => ElementHandler,
  most?: number,
) => AsyncGenerator<T>

const toElements = (emit: (item: [string, Attributes]) => void): ElementHandler => ({
  open: (element, attributes) => emit([element, attributes]),
})

/** A part that another one names. `type`: the end of its URI, which is the same in the strict namespace. */
interface Relationship {
  id: string
  type: string
  path: string
}

/** The parts that one part names; '' is the package. */
async function readRelationships(
  part: string,
  { archive, read }: { archive: Archive; read: Read },
): Promise<Relationship[]> {
  const { dir, base } = posix.parse(part)
  const path = posix.join(dir, '_rels', `${base}.rels`)
  if (!archive.has(path)) return []
  const found: Relationship[] = []
  for await (const [element, { Id = '', Type = '', Target = '', TargetMode }] of read(path, toElements)) {
    if (element !== 'Relationship' || TargetMode === 'External') continue
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
  elements: AsyncIterable<[string, Attributes]>,
  related: readonly Relationship[],
): Promise<Pick<Workbook, 'sheets' | 'is1904' | 'calculation'>> {
  const sheets: Sheet[] = []
  const prefixes: string[] = ['r']
  let is1904 = false
  let calculation: Workbook['calculation'] = 'unknown'
  for await (const [element, attributes] of elements) {
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
    if (element !== 'sheet') continue
    const id = prefixes.map((prefix) => attributes[`${prefix}:id`]).find((value) => value !== undefined)
    const part = related.find((one) => one.id === id)
    const isHidden = (attributes['state'] ?? 'visible') !== 'visible'
    sheets.push({ name: attributes['name'] ?? '', isHidden, type: part?.type ?? '', path: part?.path })
  }
  return { sheets, is1904, calculation }
}

async function readFormats(read: Read, path: string): Promise<CellFormat[]> {
  const own = new Map<number, string>()
  const formats: CellFormat[] = []
  // Tables and conditional formats have formats with ids of their own, in a list of their own.
  let list = ''
  const styles = read<number>(path, (emit) => ({
    open(element, { numFmtId, formatCode }) {
      if (element === 'numFmts' || element === 'cellXfs' || element === 'dxfs') list = element
      if (element === 'numFmt' && list === 'numFmts') own.set(Number(numFmtId), formatCode ?? '')
      if (element === 'xf' && list === 'cellXfs') emit(Number(numFmtId ?? 0))
    },
    close(element) {
      if (element === list) list = ''
    },
  }))
  const known = new Map<number, CellFormat>()
  for await (const id of styles) {
    const format = known.get(id) ?? formatOf(id, own)
    known.set(id, format)
    formats.push(format)
  }
  return formats
}

async function readStrings(texts: AsyncIterable<string>, name: string): Promise<string[]> {
  const strings: string[] = []
  let letters = 0
  for await (const text of texts) {
    letters += text.length
    if (letters > mostStringLetters)
      throw new UnreadableFileError(
        `${name} is too large: its texts have more than 64 million letters. Save the sheet as "CSV UTF-8" and import that file.`,
      )
    strings.push(text)
  }
  return strings
}

export const isTrue = (text: string | undefined): boolean => text === '1' || text === 'true'

/** Emits the text of each `parent`: all its runs, without phonetic text. */
function collectTexts(parent: string): (emit: (text: string) => void) => ElementHandler {
  return (emit) => {
    let text = ''
    let isPhonetic = false
    return {
      open(element) {
        if (element === parent) text = ''
        if (element === 'rPh') isPhonetic = true
      },
      close(element, own) {
        if (element === 't' && !isPhonetic) text += own
        if (element === 'rPh') isPhonetic = false
        if (element === parent) emit(unescapeText(text))
      },
    }
  }
}

/** Decodes characters that XML does not allow, written as `_x000D_`. */
export const unescapeText = (text: string): string =>
  text
    .slice(0, longestCell)
    .replaceAll(/_x([0-9a-f]{4})_/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
