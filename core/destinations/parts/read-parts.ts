import { createReadStream } from 'node:fs'
import { PartsDamagedError } from '../errors.ts'
import type { PartFile } from '../destination.ts'

/**
 * Large enough that the calls cost nothing compared with the bytes, small enough that the worker stays
 * responsive.
 */
const chunkBytes = 1 << 20

/**
 * Reads the bytes of part files that count, one file after the other.
 * @throws {PartsDamagedError} a file is missing or ends early
 */
export async function* readParts(parts: readonly PartFile[], signal?: AbortSignal): AsyncGenerator<Buffer> {
  for (const part of parts) {
    if (part.bytes === 0) continue
    const stream = createReadStream(part.path, { end: part.bytes - 1, highWaterMark: chunkBytes, signal })
    let read = 0
    try {
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        read += chunk.length
        yield chunk
      }
    } catch (cause) {
      signal?.throwIfAborted()
      throw new PartsDamagedError(`The part file ${part.path} can't be read. Run the export again.`, {
        cause,
      })
    }
    if (read !== part.bytes)
      throw new PartsDamagedError(
        `The part file ${part.path} ends after ${read} of ${part.bytes} bytes. Run the export again.`,
      )
  }
}
