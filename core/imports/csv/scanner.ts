/**
 * Splits text into rows of cells, one chunk at a time: RFC 4180 with any delimiter and line end.
 *
 * Hand-written because messages need the line where a row begins (also after multi-line cells) and the row
 * whose quote was never closed, and because csv-parse takes five times as long with line numbers on.
 *
 * A quote in the middle of a cell is literal, as in every spreadsheet; a quote that opens a cell must be
 * closed.
 */
export interface SourceRow {
  /**
   * As a spreadsheet counts, from 1: the header is row 1, blank rows count, a multi-line cell is one row.
   */
  row: number
  /** As a text editor counts, from 1: line ends in quotes count. */
  line: number
  cells: string[]
}

export interface Scanned {
  rows: SourceRow[]
  /** The row where reading stopped, and the reason. */
  failed?: { row: number; line: number; why: 'afterQuote' | 'notClosed' | 'tooLong' }
}

/** A row of a million characters is an unclosed quote, not a row. */
const longestRow = 1_000_000

const quote = 0x22
const lf = 0x0a
const cr = 0x0d

export function createRowScanner({ delimiter }: { delimiter: string }) {
  const delimiterCode = delimiter.charCodeAt(0)
  let text = ''
  let at = 0
  let row = 1
  let line = 1

  /** The end of the unquoted cell that starts at `from`: a delimiter, a line end or the end of the text. */
  function endOfPlain(from: number): number {
    for (let index = from; index < text.length; index++) {
      const code = text.charCodeAt(index)
      if (code === delimiterCode || code === lf || code === cr) return index
    }
    return text.length
  }

  /**
   * The index after the closing quote of the cell that starts at `from`, or -1 if the quote is not in the
   * text yet.
   */
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
    let lineEnds = 0
    for (let from = at; ;) {
      let end: number
      if (text.charCodeAt(from) === quote) {
        end = endOfQuoted(from, last)
        if (end === -1) return undefined
        const cell = text.slice(from + 1, end - 1)
        lineEnds += countLineEnds(cell)
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
      const found = { row, line, cells }
      row += 1
      line += lineEnds + 1
      return found
    }
  }

  function scan(last: boolean): Scanned {
    const rows: SourceRow[] = []
    while (at < text.length) {
      const found = scanRow(last)
      if (found === 'afterQuote') return { rows, failed: { row, line, why: found } }
      if (found === undefined) break
      rows.push(found)
    }
    text = text.slice(at)
    at = 0
    if (last && text !== '') return { rows, failed: { row, line, why: 'notClosed' } }
    return text.length > longestRow ? { rows, failed: { row, line, why: 'tooLong' } } : { rows }
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

function countLineEnds(cell: string): number {
  if (!cell.includes('\n') && !cell.includes('\r')) return 0
  return cell.match(/\r\n|\n|\r/g)?.length ?? 0
}
