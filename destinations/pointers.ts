import { readlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Publication } from './destination.ts'
import { replaceLink } from './durable.ts'
import { pointersOf } from './export-folder.ts'
import { readManifest } from './read-manifest.ts'

/** Moves the links that stand for a whole list to a run's folder; never back to an older read. */
export async function movePointers(publication: Publication, folder: string): Promise<void> {
  for (const name of pointersOf(publication)) {
    const link = join(dirname(folder), name)
    const target = await readlink(link).catch(() => undefined)
    // A link that leads to no export of ours stands for nothing.
    const shown =
      target === undefined
        ? undefined
        : await readManifest(join(dirname(folder), target)).catch(() => undefined)
    const isOlder =
      shown !== undefined && Date.parse(shown.startedAt) > Date.parse(publication.facts.startedAt)
    if (!isOlder) await replaceLink(link, basename(folder))
  }
}
