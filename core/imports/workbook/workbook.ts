import { posix } from 'node:path'
import { UnreadableFileError } from '../errors.ts'
import type { Archive } from './archive.ts'
import { formatOf, type NumberFormat } from './number-format.ts'
import { type Attributes, type ElementHandler, readXml } from './xml.ts'

/** What the cells of a sheet refer to. */
export interface Workbook {
  sheets: readonly Sheet[]
  /** Dates count from 1904 instead of 1900. */
  is1904: boolean
  /** The number format of each cell style. */
  formats: readonly NumberFormat[]
  /** Cell texts, each stored once. */
  strings: readonly string[]
}

export interface Sheet {
  name: string
  isHidden: boolean
  /** Path in the archive. */
  path: string
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
  const main = 'xl/workbook.xml'
  if (!archive.has(main))
    throw new UnreadableFileError(
      `${name} is a zip archive, but not an .xlsx workbook. Save the sheet as .xlsx or as "CSV UTF-8".`,
    )
  const read = <T>(
    path: string,
    handler: (emit: (item: T) => void) => ElementHandler,
    most = mostPartBytes,
  ) => readXml(archive.read(path, most), `${name} (${path})`, handler)

  const targets = new Map<string, string>()
  for await (const { Id = '', Target = '' } of read<Attributes>('xl/_rels/workbook.xml.rels', (emit) => ({
    open: (element, attributes) => element === 'Relationship' && emit(attributes),
  })))
    targets.set(Id, Target.startsWith('/') ? Target.slice(1) : posix.join('xl', Target))

  const sheets: Sheet[] = []
  let is1904 = false
  for await (const [element, attributes] of read<[string, Attributes]>(main, (emit) => ({
    open: (tag, given) => emit([tag, given]),
  }))) {
    if (element === 'workbookPr') is1904 = isTrue(attributes['date1904'])
    if (element !== 'sheet') continue
    const path = targets.get(attributes['r:id'] ?? attributes['id'] ?? '') ?? ''
    const isHidden = (attributes['state'] ?? 'visible') !== 'visible'
    sheets.push({ name: attributes['name'] ?? '', isHidden, path })
  }

  const own = new Map<number, string>()
  const formats: NumberFormat[] = []
  if (archive.has('xl/styles.xml')) {
    let isInCellStyles = false
    const styles = read<number>('xl/styles.xml', (emit) => ({
      open(element, { numFmtId, formatCode }) {
        if (element === 'numFmt') own.set(Number(numFmtId), formatCode ?? '')
        if (element === 'cellXfs') isInCellStyles = true
        if (element === 'xf' && isInCellStyles) emit(Number(numFmtId ?? 0))
      },
      close(element) {
        if (element === 'cellXfs') isInCellStyles = false
      },
    }))
    for await (const id of styles) formats.push(formatOf(id, own))
  }

  const strings: string[] = []
  if (archive.has('xl/sharedStrings.xml')) {
    let letters = 0
    for await (const text of read('xl/sharedStrings.xml', collectTexts('si'), mostStringBytes)) {
      letters += text.length
      if (letters > mostStringLetters)
        throw new UnreadableFileError(
          `${name} is too large: its texts have more than 64 million letters. Save the sheet as "CSV UTF-8" and import that file.`,
        )
      strings.push(text)
    }
  }
  return { sheets, is1904, formats, strings }
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
