import { createHash, hash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { PartsDamagedError } from './errors.ts'
import type { PartFile, Publication } from './destination.ts'
import type { PartsSum } from './manifest.ts'

/**
 * Large enough that the calls cost nothing compared with the bytes, small enough that the worker stays
 * responsive.
 */
const chunkBytes = 1 << 20

interface ReadParts {
  signal?: AbortSignal | undefined
  /**
   * Reads all chunks into one buffer: each is valid only until the next one is asked for. For every 64 MB of new buffers,
   * V8 marks its whole heap.
   */
  reusesBuffer?: boolean
}

/**
 * Reads the bytes of part files, one file after the other, and compares each file with its checksum when it ends.
 * @throws {PartsDamagedError} a file is missing, or has other bytes than were written
 */
export async function* readParts(
  parts: readonly PartFile[],
  { signal, reusesBuffer = false }: ReadParts = {},
): AsyncGenerator<Buffer> {
  const newBuffer = () => Buffer.allocUnsafeSlow(chunkBytes)
  let buffer: Buffer | undefined
  for (const part of parts) {
    await using file = await open(part.path).catch((cause: unknown) => {
      throw unreadable(part, cause)
    })
    const sum = createHash('sha256')
    for (let position = 0; ;) {
      signal?.throwIfAborted()
      buffer = reusesBuffer ? (buffer ?? newBuffer()) : newBuffer()
      const { bytesRead } = await file.read(buffer, 0, chunkBytes, position).catch((cause: unknown) => {
        throw unreadable(part, cause)
      })
      if (bytesRead === 0) break
      position += bytesRead
      const chunk = buffer.subarray(0, bytesRead)
      sum.update(chunk)
      yield chunk
    }
    if (sum.digest('hex') !== part.sha256)
      throw new PartsDamagedError(
        `The part file ${part.path} has other bytes than were written. Run the export again.`,
      )
  }
}

/**
 * Reads the lines of part files. They end at `\n` only: JSON may contain characters that others treat as line ends (U+2028).
 * @throws {PartsDamagedError} a file is missing, or has other bytes than were written
 */
export async function* readLines(
  parts: readonly PartFile[],
  options: Pick<ReadParts, 'signal'> = {},
): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of readParts(parts, options)) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  if (rest !== '') yield rest
}

/**
 * Compares part files with their checksums, for a program that reads the files itself.
 * @throws {PartsDamagedError}
 */
export async function verifyParts(
  parts: readonly PartFile[],
  { signal }: { signal?: AbortSignal | undefined } = {},
): Promise<void> {
  for await (const _chunk of readParts(parts, { signal, reusesBuffer: true }));
}

/** The length and the checksum of a file. */
export async function sumBytes(file: AsyncIterable<Buffer>): Promise<{ bytes: number; sha256: string }> {
  const sum = createHash('sha256')
  let bytes = 0
  for await (const chunk of file) {
    sum.update(chunk)
    bytes += chunk.length
  }
  return { bytes, sha256: sum.digest('hex') }
}

/** The checksum of a table's parts, made of the checksums that were made while they were written. */
export function sumOf(parts: readonly PartFile[], table: string): PartsSum {
  const own = parts.filter((part) => part.table === table)
  return {
    bytes: own.reduce((sum, { bytes }) => sum + bytes, 0),
    sha256: hash('sha256', own.map(({ sha256 }) => sha256).join('\n')),
  }
}

/** Whether a published export was made from the same parts. */
export const isSameParts = (
  { tables, parts }: { tables: readonly { name: string }[]; parts: readonly PartFile[] },
  published: readonly { name: string; parts?: PartsSum }[],
): boolean =>
  published.length === tables.length &&
  published.every(({ name, parts: sum }) => sum?.sha256 === sumOf(parts, name).sha256)

/**
 * Checks that each part belongs to a published table.
 * @throws {PartsDamagedError}
 */
export function checkTables({ tables, parts }: Publication): void {
  const stray = parts.find((part) => !tables.some((table) => table.name === part.table))
  if (stray === undefined) return
  throw new PartsDamagedError(`The part file ${stray.path} is of no table of this export (${stray.table}).`)
}

/**
 * Checks that as many rows arrived as the parts hold.
 * @throws {PartsDamagedError}
 */
export function checkRows(
  parts: readonly PartFile[],
  { table, rows, where }: { table: string; rows: number; where: string },
): void {
  const read = rowsOf(parts)
  if (rows === read) return
  throw new PartsDamagedError(
    `${table}: ${read} rows were read, and in ${where} ${rows} arrived. Nothing was published; run it again.`,
  )
}

export const rowsOf = (parts: readonly PartFile[]): number => parts.reduce((sum, part) => sum + part.rows, 0)

const unreadable = ({ path }: PartFile, cause: unknown) =>
  new PartsDamagedError(`The part file ${path} can't be read. Run the export again.`, { cause })
