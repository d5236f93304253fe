import { parse } from 'csv-parse'
import { stringify } from 'csv-stringify'
import { pipeline, Readable } from 'node:stream'
import { readCell } from '../../tables/csv-text.ts'
import { guardFormula } from '../../tables/formula-guard.ts'
import type { Kind, Table } from '../../tables/table.ts'

/**
 * Rewrites our CSV for a spreadsheet: `;` as delimiter, a decimal comma in number columns, the formula guard
 * in all others.
 */
export function toExcel(table: Table, chunks: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  const rewrite = table.columns.map((column) => (isNumber(column.kind) ? toComma : guardFormula))
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

const isNumber = (kind: Kind) => kind === 'integer' || kind === 'decimal'

const toComma = (number: string) => number.replace('.', ',')
