import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import type { PartFile } from '../../../core/destinations/destination.ts'

/** Writes a part as a read leaves it. */
export async function writePart(part: {
  table: string
  path: string
  text: string
  rows: number
}): Promise<PartFile> {
  const { text, ...file } = part
  await writeFile(file.path, text)
  const bytes = Buffer.byteLength(text)
  return { ...file, bytes, longest: bytes, sha256: createHash('sha256').update(text).digest('hex') }
}
