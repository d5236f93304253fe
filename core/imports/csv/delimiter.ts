import { createRowScanner } from './scanner.ts'

/** In the order in which one of two equally good ones is taken: where `;` parts cells, commas are decimals. */
const delimiters = ['\t', ';', '|', ','] as const
export type Delimiter = (typeof delimiters)[number]

/** Rows that the header is held against. */
const sampleRows = 50

/**
 * The delimiter of a file by its beginning: the one under which most rows have as many cells as the header, then
 * the one with more columns. A file of one column has none, and a comma does.
 */
export function detectDelimiter(start: string): Delimiter {
  let best: { delimiter: Delimiter; share: number; columns: number } = {
    delimiter: ',',
    share: 0,
    columns: 1,
  }
  for (const delimiter of delimiters) {
    const [header, ...rows] = sampleOf({ start, delimiter })
    const columns = header ?? 1
    if (columns < 2) continue
    const alike = rows.filter((cells) => cells === columns).length
    const share = rows.length === 0 ? 1 : alike / rows.length
    if (share > best.share || (share === best.share && columns > best.columns))
      best = { delimiter, share, columns }
    else if (best.columns === 1) best = { delimiter, share, columns }
  }
  return best.delimiter
}

/** How many cells the first rows have. */
function sampleOf({ start, delimiter }: { start: string; delimiter: Delimiter }): number[] {
  const scanner = createRowScanner({ delimiter })
  const { rows } = scanner.push(start)
  // A header alone may have no line end.
  return (rows.length > 0 ? rows : scanner.end().rows)
    .filter(({ cells }) => cells.length > 1 || cells[0] !== '')
    .slice(0, sampleRows + 1)
    .map(({ cells }) => cells.length)
}
