import { open } from 'node:fs/promises'
import { PartsDamagedError } from '../errors.ts'
import type { PartFile } from '../destination.ts'

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
 * Reads the bytes of part files that count, one file after the other.
 * @throws {PartsDamagedError} a file is missing or ends early
 */
export async function* readParts(
  parts: readonly PartFile[],
  { signal, reusesBuffer = false }: ReadParts = {},
): AsyncGenerator<Buffer> {
  const newBuffer = () => Buffer.allocUnsafeSlow(chunkBytes)
  let buffer: Buffer | undefined
  for (const part of parts) {
    if (part.bytes === 0) continue
    await using file = await open(part.path).catch((cause: unknown) => {
      throw unreadable(part, cause)
    })
    for (let position = 0; position < part.bytes;) {
      signal?.throwIfAborted()
      buffer = reusesBuffer ? (buffer ?? newBuffer()) : newBuffer()
      const length = Math.min(chunkBytes, part.bytes - position)
      const { bytesRead } = await file.read(buffer, 0, length, position).catch((cause: unknown) => {
        throw unreadable(part, cause)
      })
      if (bytesRead === 0)
        throw new PartsDamagedError(
          `The part file ${part.path} ends after ${position} of ${part.bytes} bytes. Run the export again.`,
        )
      position += bytesRead
      yield buffer.subarray(0, bytesRead)
    }
  }
}

const unreadable = ({ path }: PartFile, cause: unknown) =>
  new PartsDamagedError(`The part file ${path} can't be read. Run the export again.`, { cause })
