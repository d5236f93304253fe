import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { InvalidFile } from '../errors.ts'
import { refuseLarge, shownName } from '../source-file.ts'
import { type Encoding, createEncodingCheck } from './encoding.ts'
import {
  type Delimiter,
  type Dialect,
  type SourceRow,
  createRowScanner,
  delimiters,
  readRows,
} from './rows.ts'
import { unguardFormula } from '../../tables/formula-guard.ts'
import { readableName } from '../cells/refused.ts'

/** Enough for the header and some hundred rows, or for the first entries of a zip archive. */
const startBytes = 65_536

/**
 * Detects the format of a file. Reads it to the end once, because a single letter in the last row decides the
 * encoding; keeps only its distinct words in memory. `encoding`: how to read a file that is not UTF-8.
 * @throws {InvalidFile} it is empty or not a CSV file, or its encoding is in doubt
 */
export async function detectDialect(path: string, encoding?: Encoding): Promise<Dialect> {
  const name = shownName(path)
  const start = await readStart(path)
  const isFormat = ([format]: (typeof otherFormats)[number]) =>
    typeof format === 'string' ? start.startsWith(format) : format.test(start)
  const [, reason] = otherFormats.find(isFormat) ?? []
  if (reason !== undefined) throw new InvalidFile(`${name} ${reason}`)
  await refuseLarge(path)
  const bom = start.startsWith('\xef\xbb\xbf')
  const text = start.slice(bom ? 3 : 0)
  if (text.trim() === '') throw new InvalidFile(`${name} is empty. It needs a header and at least one row.`)
  const separator = separatorLine.exec(text)?.[1] as Delimiter | undefined
  const dialect: Dialect = {
    delimiter: separator ?? detectDelimiter(text),
    encoding: 'utf-8',
    bom,
    lineEnd: (/\r\n|\n|\r/.exec(text)?.[0] ?? '\n') as Dialect['lineEnd'],
    ...(separator !== undefined && { hasSeparatorLine: true }),
  }
  if (await isUtf8(path, name)) return dialect
  if (encoding !== undefined && encoding !== 'utf-8' && !bom) return { ...dialect, encoding }
  const check = createEncodingCheck(name, {
    mustBeUtf8: encoding === 'utf-8',
    isClassicMac: dialect.lineEnd === '\r',
  })
  const asWindows = { ...dialect, encoding: 'windows-1252' } as const
  for await (const row of readRows({ path, dialect: asWindows })) check.add(row)
  check.conclude()
  return asWindows
}

const separatorLine = /^"?sep=([,;|\t])"?[\r\n]/i

/** As Latin-1: all encodings have the same delimiters and line ends. */
async function readStart(path: string): Promise<string> {
  try {
    await using file = await open(path)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(startBytes), 0, startBytes, 0)
    return buffer.toString('latin1', 0, bytesRead)
  } catch (cause) {
    throw new InvalidFile(`${path} cannot be read: ${(cause as Error).message}.`, { cause })
  }
}

/** @throws {InvalidFile} it is binary */
async function isUtf8(path: string, name: string): Promise<boolean> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let decodes = true
  const decode = (chunk?: Buffer) => {
    try {
      decoder.decode(chunk, { stream: chunk !== undefined })
    } catch {
      decodes = false
    }
  }
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    if (chunk.includes(0)) throw new InvalidFile(`${name} is binary, not text. Import a CSV file.`)
    if (decodes) decode(chunk)
  }
  if (decodes) decode()
  return decodes
}

/** Rows to compare. */
const sampleRows = 50

/**
 * Detects the delimiter from a file's beginning: the one that gives most rows the same number of cells, then
 * the one with more columns. A title above the header may have fewer. A file of one column has none; it gets
 * a comma.
 */
function detectDelimiter(start: string): Delimiter {
  const candidates = delimiters
    .map((delimiter) => ({ delimiter, ...measure({ start, delimiter }) }))
    .filter(({ columns }) => columns > 1)
    .toSorted((a, b) => b.share - a.share || b.columns - a.columns)
  return candidates[0]?.delimiter ?? ','
}

function measure({ start, delimiter }: { start: string; delimiter: Delimiter }) {
  const scanner = createRowScanner({ delimiter })
  const { rows } = scanner.push(start)
  // A header alone may have no line end.
  const lengths = (rows.length > 0 ? rows : scanner.end().rows)
    .filter(({ cells }) => cells.length > 1 || cells[0] !== '')
    .slice(0, sampleRows)
    .map(({ cells }) => cells.length)
  const alike = Map.groupBy(
    lengths.filter((length) => length > 1),
    (length) => length,
  )
  const [[columns, { length: count }] = [1, { length: 0 }]] = [...alike].toSorted(
    ([, a], [, b]) => b.length - a.length,
  )
  return { columns, share: count / lengths.length }
}

/** How to save a workbook in a readable format, in the words of the spreadsheet's menu. */
const howToSave =
  'Open it, choose File > Save as, select the type "CSV UTF-8 (delimited)", and import that file. Each sheet becomes a file of its own.'

/**
 * Why a file is not CSV, and how to fix it, by its first 64 KB as Latin-1, where a zip archive names its first entries:
 * the first beginning or pattern that fits.
 */
const otherFormats: readonly [RegExp | string, string][] = [
  [
    /^PK[^]*(\[Content_Types\]\.xml|xl\/|opendocument\.spreadsheet)/,
    `is a workbook (.xlsx or .ods), not a CSV file. ${howToSave}`,
  ],
  ['PK', 'is a zip archive. Unpack it and import the CSV file inside.'],
  ['\xd0\xcf\x11\xe0', `is an old workbook (.xls), or one that is protected by a password. ${howToSave}`],
  ['\x1f\x8b', 'is compressed (gzip). Unpack it and import the CSV file inside.'],
  [
    /^(\xff\xfe|\xfe\xff|([^\0]\0){4}|(\0[^\0]){4})/,
    'is text in UTF-16 ("Unicode text"). Save it as "CSV UTF-8" instead.',
  ],
  ['%PDF', 'is a PDF, not a CSV file. Export the table itself as CSV.'],
  [
    /^(\xef\xbb\xbf)?\s*(<(!|\?xml|html|head|body|table|meta|style|div)|MIME-Version:)/i,
    `is a web page or XML, whatever its name says. ${howToSave}`,
  ],
]

/** How to read the rows of a file. A run detects it once and keeps it in its check file. */
export interface Table {
  dialect: Dialect
  header: readonly string[]
  /** As the spreadsheet counts, from 1. */
  headerRow: number
  skipRows: readonly number[]
  /**
   * Cells that would run as a formula have a `'` prefix to remove: in result files and in exports for
   * spreadsheets. The latter have `;` and a byte order mark; a spreadsheet that saves one keeps at least the
   * `;`.
   */
  guarded: boolean
}

/** The columns that result files add to those of the file; a result file may be imported again. */
export const resultColumns = ['_row', '_status', '_id', '_error', '_sent_at', '_sent', '_look'] as const

/** Far more than the fields and lines of one change; each column is searched among all of them. */
const mostColumns = 2_000

export interface TableOptions {
  /** Default: the first row that is not blank. Rows above it are skipped. */
  headerRow?: number | undefined
  skipRows?: readonly (number | 'hidden')[] | undefined
  /** How to read a file that is not UTF-8. Default: Windows-1252, where that is clear. */
  encoding?: Encoding | undefined
}

/**
 * Detects how a file is written, and reads its header. A result file has its header in row 1 and no rows to
 * skip, whatever the options for its source file.
 * @throws {InvalidFile} it is not a table with a header and at least one row
 */
export async function openTable(
  path: string,
  { headerRow, skipRows = [], encoding }: TableOptions = {},
): Promise<Table> {
  const name = shownName(path)
  const dialect = await detectDialect(path, encoding)
  let header: SourceRow | undefined
  let isResult = false
  for await (const row of readRows({ path, dialect })) {
    if (header === undefined) {
      isResult = isResultFile(row.cells)
      if (!isResult && row.row < (headerRow ?? 1)) continue
      if (!isResult && row.row > (headerRow ?? Infinity)) break
      header = row
      if (header.cells.length > mostColumns)
        throw new InvalidFile(
          `${name} has ${header.cells.length.toLocaleString('en')} columns; the limit is ${mostColumns.toLocaleString('en')}. Remove the columns that you do not import.`,
        )
      continue
    }
    const guarded = dialect.delimiter === ';' || dialect.bom || isResult
    return {
      dialect,
      guarded,
      header: guarded ? header.cells.map(unguardFormula) : header.cells,
      headerRow: header.row,
      skipRows: isResult ? [] : skipRows.filter((row) => row !== 'hidden'),
    }
  }
  if (header === undefined && headerRow !== undefined)
    throw new InvalidFile(
      `${name}: row ${headerRow} is empty, so it cannot be the header. Change --header-row.`,
    )
  throw new InvalidFile(`${name} has a header but no rows. It needs at least one row below the header.`)
}

/** Whether a header belongs to a result file. */
export function isResultFile(header: readonly string[]): boolean {
  const names = new Set(header.map(readableName))
  return names.has('_row') && names.has('_error')
}

/** The rows below the header, without blank and skipped ones. */
export async function* readTable(
  path: string,
  { dialect, guarded, headerRow, skipRows }: Table,
): AsyncGenerator<SourceRow> {
  const skipped = new Set(skipRows)
  for await (const row of readRows({ path, dialect })) {
    if (row.row <= headerRow || skipped.has(row.row)) continue
    yield guarded ? { ...row, cells: row.cells.map(unguardFormula) } : row
  }
}
