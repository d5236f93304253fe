import { createReadStream } from 'node:fs'
import { basename } from 'node:path'
import type { Dialect } from './dialect.ts'
import { UnreadableFileError } from '../errors.ts'
import { unguardFormula } from '../../tables/formula-guard.ts'
import { createRowScanner, type Scanned, type SourceRow } from './scanner.ts'

/** As many rows as a spreadsheet has, without the header: what is longer was never looked at by a person. */
export const mostRows = 1_048_575

/**
 * The rows of a file from its header on, without blank ones, a chunk at a time in memory. `guarded`: its cells have a
 * `'` before what would be a formula (`isGuarded`), which is taken off.
 * @throws {UnreadableFileError} where a row can't be told from the next, or there are more than `mostRows`
 */
export async function* readRows({
  path,
  dialect,
  guarded = false,
}: {
  path: string
  dialect: Dialect
  guarded?: boolean
}): AsyncGenerator<SourceRow> {
  const name = basename(path)
  const decoder = new TextDecoder(dialect.encoding)
  const scanner = createRowScanner({ delimiter: dialect.delimiter })
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>)
    yield* take({ name, guarded, ...scanner.push(decoder.decode(chunk, { stream: true })) })
  yield* take({ name, guarded, ...scanner.push(decoder.decode()) })
  yield* take({ name, guarded, ...scanner.end() })
}

function* take(options: Scanned & { name: string; guarded: boolean }): Generator<SourceRow> {
  const { name, guarded, rows, failed } = options
  for (const row of rows) {
    if (row.row > mostRows + 1)
      throw new UnreadableFileError(
        `${name} has more than ${mostRows.toLocaleString('en')} rows, which is all that a spreadsheet can show. Split it into several files.`,
      )
    if (row.cells.every((cell) => cell.trim() === '')) continue
    yield guarded ? { ...row, cells: row.cells.map(unguardFormula) } : row
  }
  if (failed !== undefined)
    throw new UnreadableFileError(`${name}, ${placeOf(failed)} ${reasons[failed.why]}`)
}

const reasons: Readonly<Record<NonNullable<Scanned['failed']>['why'], string>> = {
  afterQuote:
    'has text right after a closing quote. Inside a quoted cell a quote is written twice: "Taller ""Sur""".',
  notClosed: 'opens a quote that is never closed. Close it, or write a quote inside a quoted cell twice.',
  tooLong: 'is longer than a million characters. Most likely a quote opens in it that is never closed.',
}

/** `row 17`, and the line of the text too where cells of several lines make it another. */
export const placeOf = ({ row, line }: { row: number; line: number }): string =>
  row === line ? `row ${row}` : `row ${row} (line ${line} of the text)`
