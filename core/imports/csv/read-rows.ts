import { createReadStream } from 'node:fs'
import { basename } from 'node:path'
import { isBlank } from '../cells/invisible.ts'
import { UnreadableFileError } from '../errors.ts'
import { shownName } from '../source-file.ts'
import { createDecoder, type Encoding } from './encoding.ts'
import { createRowScanner, type Scanned, type SourceRow } from './scanner.ts'

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

/** As many rows as a spreadsheet has below its header. */
export const mostRows = 1_048_575

/**
 * The rows of a file, header included and blank rows left out, with one chunk in memory at a time. Row
 * numbers are those the spreadsheet shows.
 * @throws {UnreadableFileError} rows cannot be told apart, or there are more than `mostRows`
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
  // The lines of a converted workbook belong to a text that its owner never sees.
  const hasLines = name === basename(path)
  const take = function* ({ rows, failed }: Scanned): Generator<SourceRow> {
    for (const found of rows) {
      const row = dialect.hasSeparatorLine ? found.row - 1 : found.row
      if (row === 0) continue
      if (row > mostRows + 1)
        throw new UnreadableFileError(
          `${name} has more than ${mostRows.toLocaleString('en')} rows, the most that a spreadsheet can show. Split it into several files.`,
        )
      const { line, cells } = found
      if (!cells.every(isBlank)) yield { row, line: hasLines ? line : row, cells }
    }
    if (failed !== undefined)
      throw new UnreadableFileError(`${name}, ${placeOf(failed)} ${reasons[failed.why]}`)
  }
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>)
    yield* take(scanner.push(decode(chunk)))
  yield* take(scanner.push(decode()))
  yield* take(scanner.end())
}

const reasons: Readonly<Record<NonNullable<Scanned['failed']>['why'], string>> = {
  afterQuote:
    'has text right after a closing quote. Inside a quoted cell, write a quote twice: "Taller ""Sur""".',
  notClosed: 'opens a quote that is never closed. Close it, or write a quote inside a quoted cell twice.',
  tooLong:
    'is longer than a million characters. It most likely contains an opening quote that is never closed.',
}

/** `row 17`, with the line number if multi-line cells make it differ. */
export const placeOf = ({ row, line }: { row: number; line: number }): string =>
  row === line ? `row ${row}` : `row ${row} (line ${line} of the text)`
