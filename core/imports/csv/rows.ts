import { createReadStream } from 'node:fs'
import { isBlank } from '../cells/refused.ts'
import { InvalidFile } from '../errors.ts'
import { shownName } from '../source-file.ts'
import { type Encoding, createDecoder } from './encoding.ts'

/** If two are equally good, the first wins: where `;` separates cells, commas are decimal marks. */
export const delimiters = ['\t', ';', '|', ','] as const
export type Delimiter = (typeof delimiters)[number]

/** The format of a CSV file. Result files are written in the same one. */
export interface Dialect {
  delimiter: Delimiter
  encoding: Encoding
  bom: boolean
  lineEnd: '\n' | '\r\n' | '\r'
  /** The first line is `sep=;`, which spreadsheets obey and hide. */
  hasSeparatorLine?: true
}

export interface SourceRow {
  /** As a spreadsheet counts, from 1: the header is row 1, blank rows count, a multi-line cell is one row. */
  row: number
  cells: string[]
}

/** Why reading stops in a row. */
const reasons = {
  afterQuote:
    'has text right after a closing quote. Inside a quoted cell, write a quote twice: "Taller ""Sur""".',
  notClosed: 'opens a quote that is never closed. Close it, or write a quote inside a quoted cell twice.',
  tooLong:
    'is longer than a million characters. It most likely contains an opening quote that is never closed.',
} as const

export interface Scanned {
  rows: SourceRow[]
  failed?: { row: number; why: keyof typeof reasons }
}

/** A row of a million characters is an unclosed quote, not a row. */
const longestRow = 1_000_000

const quote = 0x22
const lf = 0x0a
const cr = 0x0d

/**
 * Splits text into rows of cells, one chunk at a time: RFC 4180 with any delimiter and line end. A quote in the middle
 * of a cell is literal, as in every spreadsheet; a quote that opens a cell must be closed.
 *
 * Hand-written because messages name the row whose quote was never closed, which csv-parse does not know, and because
 * csv-parse takes five times as long with its own counting.
 */
export function createRowScanner({ delimiter }: { delimiter: string }) {
  const delimiterCode = delimiter.charCodeAt(0)
  let text = ''
  let at = 0
  let row = 1

  /** The end of the unquoted cell that starts at `from`: a delimiter, a line end or the end of the text. */
  function endOfPlain(from: number): number {
    for (let index = from; index < text.length; index++) {
      const code = text.charCodeAt(index)
      if (code === delimiterCode || code === lf || code === cr) return index
    }
    return text.length
  }

  /** The index after the closing quote of the cell that starts at `from`; -1 if the text ends before it is known. */
  function endOfQuoted(from: number, last: boolean): number {
    for (let index = from + 1; ;) {
      const close = text.indexOf('"', index)
      if (close === -1 || (close === text.length - 1 && !last)) return -1
      if (text.charCodeAt(close + 1) !== quote) return close + 1
      index = close + 2
    }
  }

  /** Scans one row; undefined if the text does not contain all of it yet. */
  function scanRow(last: boolean): SourceRow | 'afterQuote' | undefined {
    const cells: string[] = []
    for (let from = at; ;) {
      let end: number
      if (text.charCodeAt(from) === quote) {
        end = endOfQuoted(from, last)
        if (end === -1) return undefined
        const cell = text.slice(from + 1, end - 1)
        cells.push(cell.includes('"') ? cell.replaceAll('""', '"') : cell)
      } else {
        end = endOfPlain(from)
        cells.push(text.slice(from, end))
      }
      if (end === text.length && !last) return undefined
      const code = text.charCodeAt(end)
      if (code === delimiterCode) {
        from = end + 1
        continue
      }
      if (code !== lf && code !== cr && end < text.length) return 'afterQuote'
      // A chunk may end between CR and LF.
      if (code === cr && end + 1 === text.length && !last) return undefined
      at = end + (code === cr && text.charCodeAt(end + 1) === lf ? 2 : 1)
      return { row: row++, cells }
    }
  }

  function scan(last: boolean): Scanned {
    const rows: SourceRow[] = []
    while (at < text.length) {
      const found = scanRow(last)
      if (found === 'afterQuote') return { rows, failed: { row, why: found } }
      if (found === undefined) break
      rows.push(found)
    }
    text = text.slice(at)
    at = 0
    if (last && text !== '') return { rows, failed: { row, why: 'notClosed' } }
    return text.length > longestRow ? { rows, failed: { row, why: 'tooLong' } } : { rows }
  }

  return {
    push(chunk: string): Scanned {
      text += chunk
      return scan(false)
    },
    /** Returns the last row, which may have no line end. */
    end: (): Scanned => scan(true),
  }
}

/** As many rows as a spreadsheet has below its header. */
export const mostRows = 1_048_575

/**
 * The rows of a file, header included and blank rows left out, with one chunk in memory at a time. Row
 * numbers are those the spreadsheet shows.
 * @throws {InvalidFile} rows cannot be told apart, or there are more than `mostRows`
 */
export async function* readRows({
  path,
  dialect,
}: {
  path: string
  dialect: Dialect
}): AsyncGenerator<SourceRow> {
  const name = shownName(path)
  const decode = createDecoder(dialect.encoding)
  const scanner = createRowScanner({ delimiter: dialect.delimiter })
  const hidden = dialect.hasSeparatorLine ? 1 : 0
  const take = function* ({ rows, failed }: Scanned): Generator<SourceRow> {
    for (const { row, cells } of rows) {
      if (row <= hidden) continue
      if (row - hidden > mostRows + 1)
        throw new InvalidFile(
          `${name} has more than ${mostRows.toLocaleString('en')} rows, the most that a spreadsheet can show. Split it into several files.`,
        )
      if (!cells.every(isBlank)) yield { row: row - hidden, cells }
    }
    if (failed !== undefined)
      throw new InvalidFile(`${name}, row ${failed.row - hidden} ${reasons[failed.why]}`)
  }
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>)
    yield* take(scanner.push(decode(chunk)))
  yield* take(scanner.push(decode()))
  yield* take(scanner.end())
}
