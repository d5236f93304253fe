const quote = 0x22
const comma = 0x2c
const newline = 0x0a

/** All chunks have at least so many bytes, but for the last. */
const leastBytes = 1 << 20

const point = 0x2e
const zero = 0x30
const nine = 0x39

/**
 * Writes the timestamps of each row of our CSV once more at its end, byte for byte (so NULL stays apart from empty text)
 * to the microsecond, and measures the rows. PostgreSQL would round finer digits, at the end of a year into the next.
 */
export function createCellRepeater(options: { columns: number; repeated: readonly number[] }) {
  const isRepeated = new Uint8Array(options.columns)
  for (const column of options.repeated) isRepeated[column] = 1
  let out = Buffer.alloc(0)
  let outBytes = 0
  /** The cells of the row to repeat, each with a comma before it. */
  let cells = Buffer.alloc(0)
  let cellsBytes = 0
  let longestRow = 0
  // A chunk may end in the middle of a row and of a cell.
  let column = 0
  let isQuoted = false
  let rowBytes = 0
  let isContinued = false

  function keep(chunk: Buffer, from: number, to: number): void {
    const needed = cellsBytes + 1 + to - from
    if (needed > cells.length) cells = Buffer.concat([cells], 2 * needed)
    if (!isContinued) cells[cellsBytes++] = comma
    cellsBytes += chunk.copy(cells, cellsBytes, from, to)
    isContinued = false
  }

  function cutFinerDigits(): void {
    let kept = 0
    /** Since the point; -1 elsewhere. */
    let places = -1
    for (let at = 0; at < cellsBytes; at++) {
      const byte = cells[at]!
      if (byte === point) places = 0
      else places = places >= 0 && byte >= zero && byte <= nine ? places + 1 : -1
      if (places <= 6) cells[kept++] = byte
    }
    cellsBytes = kept
  }

  function endRow(chunk: Buffer, from: number, to: number): void {
    outBytes += chunk.copy(out, outBytes, from, to)
    cutFinerDigits()
    outBytes += cells.copy(out, outBytes, 0, cellsBytes)
    cellsBytes = 0
  }

  function scan(chunk: Buffer): void {
    // A row becomes at most twice as long: there is a comma or a newline for each of its cells.
    const needed = outBytes + cellsBytes + 2 * chunk.length
    if (needed > out.length) out = Buffer.concat([out], 2 * needed)
    let copied = 0
    let cellAt = 0
    let rowAt = -rowBytes
    let at = 0
    for (; at < chunk.length; at++) {
      const byte = chunk[at]!
      // Few bytes of a text are at or below a comma.
      if (byte > comma) continue
      if (byte === quote) isQuoted = !isQuoted
      else if (isQuoted || (byte !== comma && byte !== newline)) continue
      else {
        if (isRepeated[column] === 1) keep(chunk, cellAt, at)
        cellAt = at + 1
        column++
        if (byte === comma) continue
        endRow(chunk, copied, at)
        longestRow = Math.max(longestRow, at - rowAt)
        copied = at
        rowAt = cellAt
        column = 0
      }
    }
    if (isRepeated[column] === 1) {
      keep(chunk, cellAt, at)
      isContinued = true
    }
    outBytes += chunk.copy(out, outBytes, copied)
    rowBytes = at - rowAt
  }

  return {
    /**
     * A chunk is valid only until the next one is asked for, as those given may be. A socket may go on reading a chunk
     * smaller than its own buffer after that, so small ones are collected.
     */
    async *repeat(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
      for await (const chunk of chunks) {
        scan(chunk)
        if (outBytes < leastBytes) continue
        yield out.subarray(0, outBytes)
        outBytes = 0
      }
      // The last row may have no newline. Without its cells, one with too many of its own would pass for a row of ours.
      cutFinerDigits()
      if (rowBytes > 0) outBytes += cells.copy(out, outBytes, 0, cellsBytes)
      if (outBytes > 0) yield out.subarray(0, outBytes)
    },
    /** The bytes of the longest row of those given. */
    get longestRow() {
      return Math.max(longestRow, rowBytes)
    },
  }
}
