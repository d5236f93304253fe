const quote = 0x22
const lineFeed = 0x0a

/** A row as far as its raw text shows it: enough to count and identify it. */
interface ScannedRow {
  /** The text of the key cells with the delimiters between them, exactly as in the file. */
  key: string
  cells: number
}

/**
 * Reads only the keys of CSV rows as bytes arrive, many times faster than a parser. Equal keys always have
 * equal text: our files write a value in one way only.
 */
export function createKeyScanner(options: {
  delimiter: string
  /** How many leading cells of a row form its key. */
  keys: number
  onRow: (row: ScannedRow) => void
}): (bytes: Buffer) => void {
  const { keys, onRow } = options
  const delimiter = options.delimiter.charCodeAt(0)
  let quoted = false
  let cells = 1
  let key: string | undefined
  /** The start of a key that continues in the next bytes. */
  let begun: Buffer[] = []

  const endKey = (piece: Buffer) => {
    key = begun.length === 0 ? piece.toString() : Buffer.concat([...begun, piece]).toString()
    begun = []
  }
  return (bytes) => {
    let start = 0
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]
      if (byte === quote) quoted = !quoted
      else if (quoted) continue
      else if (byte === delimiter) {
        if (cells === keys) endKey(bytes.subarray(start, at))
        cells++
      } else if (byte === lineFeed) {
        if (key === undefined) endKey(bytes.subarray(start, at))
        onRow({ key: key ?? '', cells })
        key = undefined
        cells = 1
        start = at + 1
      }
    }
    // A copy, because the caller may reuse the buffer.
    if (key === undefined) begun.push(Buffer.from(bytes.subarray(start)))
  }
}
