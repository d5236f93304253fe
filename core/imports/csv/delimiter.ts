import { createRowScanner } from './scanner.ts'

/** If two are equally good, the first wins: where `;` separates cells, commas are decimal marks. */
const delimiters = ['\t', ';', '|', ','] as const
export type Delimiter = (typeof delimiters)[number]

/** Rows to compare. */
const sampleRows = 50

/**
 * Detects the delimiter from a file's beginning: the one that gives most rows the same number of cells, then
 * the one with more columns. A title above the header may have fewer. A file of one column has none; it gets
 * a comma.
 */
export function detectDelimiter(start: string): Delimiter {
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
