import { parse } from 'csv-parse'
import { stringify } from 'csv-stringify'
import { pipeline, Readable } from 'node:stream'
import { readCell } from '../../tables/cell.ts'
import { guardFormula, guardText } from '../../tables/formula-guard.ts'
import type { Kind, Table } from '../../tables/table.ts'

/**
 * Rewrites our CSV for a spreadsheet: `;` as delimiter, a decimal comma in number columns, texts that
 * it would take for numbers or dates as texts, the formula guard in all others.
 */
export function toExcel(table: Table, chunks: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  const rewrite = table.columns.map((column) => toCell(column.kind))
  async function* rewriteRows(rows: AsyncIterable<(string | null)[]>) {
    for await (const row of rows) yield row.map((cell, at) => (cell === null ? null : rewrite[at]!(cell)))
  }
  // The last stream fails with any earlier failure, so the callback has nothing to do.
  return pipeline(
    Readable.from(chunks),
    parse({ cast: readCell }),
    rewriteRows,
    stringify({ delimiter: ';', quoted_match: /^$/ }),
    () => {},
  ) as AsyncIterable<Buffer>
}

function toCell(kind: Kind): (text: string) => string {
  if (kind === 'integer' || kind === 'decimal') return toComma
  return kind === 'text' ? guardText : guardFormula
}

const toComma = (number: string) => number.replace('.', ',')
