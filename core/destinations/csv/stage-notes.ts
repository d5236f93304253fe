import { join } from 'node:path'
import { rowsOf } from '../parts/check-parts.ts'
import type { PartFile, Publication } from '../destination.ts'
import type { Manifest, PublishedFile } from '../manifest/manifest.ts'
import { readParts } from '../parts/read-parts.ts'
import { writeFile } from './write-file.ts'

/** The header of `missing.csv`. */
export const missingHeader = 'id\n'

interface Stage {
  publication: Publication
  folder: string
}

/** Writes the files beside the tables, if any: rejected items and ids that do not exist. */
export async function stageNotes(stage: Stage): Promise<Pick<Manifest, 'rejected' | 'missing'>> {
  const { rejected = [], missing } = stage.publication
  const rejectedFiles = await stageLines(stage, { path: 'rejected.jsonl', parts: rejected, header: '' })
  const notes = { rejected: { rows: rowsOf(rejected), files: rejectedFiles } }
  if (missing === undefined) return notes
  const { parts, first } = missing
  const files = await stageLines(stage, { path: 'missing.csv', parts, header: missingHeader })
  return { ...notes, missing: { rows: rowsOf(parts), first: [...first], files } }
}

async function stageLines(
  { publication, folder }: Stage,
  { path, parts, header }: { path: string; parts: readonly PartFile[]; header: string },
): Promise<PublishedFile[]> {
  if (rowsOf(parts) === 0) return []
  async function* chunks() {
    if (header !== '') yield Buffer.from(header)
    yield* readParts(parts, { signal: publication.signal, reusesBuffer: true })
  }
  return [{ path, rows: rowsOf(parts), ...(await writeFile({ path: join(folder, path), chunks: chunks() })) }]
}
