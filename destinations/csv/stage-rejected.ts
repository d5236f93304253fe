import { join } from 'node:path'
import { createLineCounter } from '../../tables/row-scanner.ts'
import { checkRows } from '../check-parts.ts'
import type { Publication } from '../destination.ts'
import type { Manifest } from '../manifest.ts'
import { readParts } from '../read-parts.ts'
import type { Summing } from './sum.ts'
import { writeFile } from './write-file.ts'

const rejectedFile = 'rejected.jsonl'

/** Copies the lines of what was rejected, if there are any. */
export async function stageRejected(options: {
  publication: Publication
  folder: string | undefined
  summing: Summing
}): Promise<Manifest['rejected']> {
  const { publication, folder, summing } = options
  const parts = publication.rejected ?? []
  if (parts.every((part) => part.rows === 0)) return { rows: 0, files: [] }
  const written = await writeFile({
    path: folder && join(folder, rejectedFile),
    chunks: readParts(parts, publication.signal),
    counter: createLineCounter(),
    summing,
  })
  checkRows(parts, { table: 'rejected', rows: written.rows, where: rejectedFile })
  return { rows: written.rows, files: [{ path: rejectedFile, ...written }] }
}
