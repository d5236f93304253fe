import { parse } from 'csv-parse'
import { createHash } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline, Readable } from 'node:stream'
import { setImmediate as nextEventLoopTurn } from 'node:timers/promises'
import type { PartFile } from '../../destinations/destination.ts'
import { readLines, readParts } from '../../destinations/parts.ts'
import { toInstant } from '../../billing/instants.ts'
import { parseLossless } from '../../billing/lossless-json.ts'
import type { Identity, IdSet } from '../../reading/range-state.ts'
import { idOf } from '../../reading/record.ts'
import { createDiskSet } from '../../storage/disk-set.ts'

/** The set of what a read has written. */
export interface WrittenSet extends IdSet {
  /**
   * Adds the rejected records of one response, one per line, and returns for each whether it was not yet written. Equal lines
   * are records that differ in what is private.
   */
  addLines(lines: readonly string[]): boolean[]
  close(): Promise<void>
}

/**
 * Builds, in a file of its own, the set of ids in a table's parts and of the checksums of rejected lines: a read
 * that falls back to page by page may have to distinguish millions of them.
 */
export async function openIdSet(options: {
  folder: string
  name: string
  parts: readonly PartFile[]
  rejected: readonly PartFile[]
  /** Converts an id of the service to the form in the parts: unchanged or hashed. */
  toWritten: (id: string) => string
  /** The place of the column `created` in the parts; -1 if they have none. */
  created: number
}): Promise<WrittenSet> {
  const path = join(options.folder, `${options.name}.ids.db`)
  // Where several workers read, this one may have nothing of the read yet.
  await mkdir(options.folder, { recursive: true })
  await rm(path, { force: true })
  // Not durable: after a crash the next attempt rebuilds it from its own checkpoint.
  const set = createDiskSet({ path })
  for await (const { id, created } of identitiesOf(options)) add(id, created)
  /** Another `created` under a known id is another record. */
  function add(id: string, created = unknown): boolean {
    const known = set.get('ids', id)
    if (known === undefined) return set.add('ids', id, created)
    if (created === unknown || known === unknown || known === created) return false
    return set.add('ids', `${id} of ${created}`, created)
  }
  /** @param copy which of several equal lines it is, from 1 */
  const addLine = (line: string, copy: number) =>
    set.add('rejected', createHash('sha256').update(`${copy} ${line}`).digest('hex'))
  /** Only those that are there more than once: there may be millions of others. */
  const copies = new Map<string, number>()
  for await (const line of readLines(options.rejected)) {
    if (!addLine(line, 1)) {
      const copy = (copies.get(line) ?? 1) + 1
      copies.set(line, copy)
      addLine(line, copy)
    }
    // One with an id was read and counted, although it has no row.
    const id = idOf((parseLossless(line) as { record: unknown }).record)
    if (id !== undefined) add(id)
  }
  return {
    addLines(lines) {
      const shown = new Map<string, number>()
      return lines.map((line) => {
        const copy = (shown.get(line) ?? 0) + 1
        shown.set(line, copy)
        return addLine(line, copy)
      })
    },
    add: (records) => records.map(({ id, created }) => add(options.toWritten(id), created)),
    async close() {
      set.close()
      await rm(path, { force: true })
    },
  }
}

/** A `created` that is unreadable, or not in the parts. */
const unknown = 0

/** The first cell of each row is the record's id. */
async function* identitiesOf(of: { parts: readonly PartFile[]; created: number }): AsyncIterable<Identity> {
  // Errors of earlier streams reach the reader through the last one, so the callback has nothing to do.
  const rows = pipeline(Readable.from(readParts(of.parts)), parse(), () => {}) as AsyncIterable<string[]>
  for await (const row of rows)
    if (row[0] !== undefined) yield { id: row[0], created: toInstant(row[of.created]) }
}

/**
 * The ids that several rows of these parts have. Looks for equal hashes first, which takes 8 bytes a row, and a tenth
 * of the time of a set on disk.
 */
export async function findRepeatedIds(parts: readonly PartFile[]): Promise<string[]> {
  const rows = parts.reduce((sum, { rows }) => sum + rows, 0)
  const count = Math.max(1, Math.ceil(rows / mostSorted))
  // Hashes spread evenly: only where one id comes very often does a share not hold all of its own.
  const shares = Array.from({ length: count }, () => ({
    hashes: new Float64Array(Math.ceil((rows / count) * 1.02)),
    used: 0,
  }))
  await scanIds(parts, (id) => {
    const hash = hashOf(id)
    const share = shares[Math.floor((hash / 2 ** 53) * count)]!
    share.hashes[share.used++] = hash
  })
  const suspects = new Set<number>()
  for (const { hashes, used } of shares) {
    const sorted = hashes.subarray(0, used)
    sorted.sort()
    for (let at = 1; at < sorted.length && suspects.size < maxRepeated; at++)
      if (sorted[at] === sorted[at - 1]) suspects.add(sorted[at] ?? NaN)
    await nextEventLoopTurn()
  }
  if (suspects.size === 0) return []
  const seen = new Set<string>()
  const repeated = new Set<string>()
  await scanIds(parts, (id) => {
    if (!suspects.has(hashOf(id))) return
    if (seen.has(id)) repeated.add(id)
    seen.add(id)
  })
  return [...repeated]
}

/** Takes 0.2 s to sort; 50,000,000 take 18 s, and a step without a heartbeat for 5 s counts as lost. */
const mostSorted = 500_000

/** No more of them are named. */
const maxRepeated = 100

async function scanIds(parts: readonly PartFile[], onId: (id: string) => void): Promise<void> {
  const add = scanFirstCells(onId)
  for await (const chunk of readParts(parts)) add(chunk)
}

/** A hash of 53 bits (cyrb53): two of a million different ids share one once in 20,000 reads, and are then compared. */
function hashOf(text: string): number {
  let [high, low] = [0xdeadbeef, 0x41c6ce57]
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    high = Math.imul(high ^ code, 2_654_435_761)
    low = Math.imul(low ^ code, 1_597_334_677)
  }
  high = Math.imul(high ^ (high >>> 16), 2_246_822_507) ^ Math.imul(low ^ (low >>> 13), 3_266_489_909)
  low = Math.imul(low ^ (low >>> 16), 2_246_822_507) ^ Math.imul(high ^ (high >>> 13), 3_266_489_909)
  return 4_294_967_296 * (2_097_151 & low) + (high >>> 0)
}

const quote = 0x22
const comma = 0x2c
const lineFeed = 0x0a

/**
 * Reads only the first cell of each CSV row as bytes arrive, exactly as it is in the file, many times faster than a parser.
 * Equal cells always have equal text: our files write a value in one way only.
 */
function scanFirstCells(onCell: (text: string) => void): (bytes: Buffer) => void {
  let isQuoted = false
  let isFirst = true
  /** The start of a cell that continues in the next bytes. */
  let begun: Buffer[] = []

  const end = (piece: Buffer) => {
    onCell(begun.length === 0 ? piece.toString() : Buffer.concat([...begun, piece]).toString())
    begun = []
    isFirst = false
  }
  return (bytes) => {
    let start = 0
    for (let index = 0; index < bytes.length; index++) {
      const byte = bytes[index]
      if (byte === quote) isQuoted = !isQuoted
      else if (isQuoted) continue
      else if (byte === comma && isFirst) end(bytes.subarray(start, index))
      else if (byte === lineFeed) {
        if (isFirst) end(bytes.subarray(start, index))
        isFirst = true
        start = index + 1
      }
    }
    // A copy, because the caller may reuse the buffer.
    if (isFirst) begun.push(Buffer.from(bytes.subarray(start)))
  }
}
