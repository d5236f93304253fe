import { crc32 } from 'node:zlib'
import type { Publication } from '../destination.ts'
import type { PartsSum } from '../manifest/manifest.ts'
import { readParts } from './read-parts.ts'

/**
 * Computes a checksum of each table's rows, independent of how the rows are split into parts. It tells a
 * mistake from a repetition and is no protection against tampering, so CRC-32 suffices (SHA-256 takes ten
 * times as long).
 * @throws {PartsDamagedError}
 */
export async function sumParts({
  tables,
  parts,
  signal,
}: Publication): Promise<ReadonlyMap<string, PartsSum>> {
  const sums = new Map<string, PartsSum>()
  for (const { name } of tables) {
    let bytes = 0
    let sum = 0
    const own = parts.filter((part) => part.table === name)
    for await (const chunk of readParts(own, { signal, reusesBuffer: true })) {
      sum = crc32(chunk, sum)
      bytes += chunk.length
    }
    sums.set(name, { bytes, crc32: sum.toString(16).padStart(8, '0') })
  }
  return sums
}

/** Whether a published export was made from the same rows. */
export const isSameParts = (
  sums: ReadonlyMap<string, PartsSum>,
  published: readonly { name: string; parts?: PartsSum }[],
): boolean =>
  published.length === sums.size &&
  published.every(({ name, parts }) => {
    const sum = sums.get(name)
    return sum !== undefined && sum.bytes === parts?.bytes && sum.crc32 === parts.crc32
  })
