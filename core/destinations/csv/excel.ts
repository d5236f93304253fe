import { parse } from 'csv-parse'
import { stringify } from 'csv-stringify'
import { pipeline, Readable } from 'node:stream'
import { readCell } from '../../tables/csv-text.ts'
import { guardFormula } from '../../tables/formula-guard.ts'
import type { Kind, Table } from '../../tables/table.ts'

/** Rewrites our CSV for a spreadsheet: `;`, the decimal comma in number columns, the guard in all others. */
export function toExcel(table: Table, chunks: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  const rewrite = table.columns.map((column) => (isNumber(column.kind) ? toComma : guardFormula))
  async function* rewriteRows(rows: AsyncIterable<(string | null)[]>) {
    for await (const row of rows) yield row.map((cell, at) => (cell === null ? null : rewrite[at]!(cell)))
  }
  // The last stream fails with whatever fails before it, so nothing is left to do when the line ends.
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
