import { readlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Publication } from './destination.ts'
import { replaceLink } from '../storage/durable.ts'
import { pointersOf, type PointerName } from './export-folder.ts'
import { readManifest } from './manifest/read-manifest.ts'
import { ForeignWarehouseError } from './errors.ts'

/** Moves the links for a whole list to a run's folder, but never back to an older read. */
export async function movePointers(publication: Publication, folder: string): Promise<void> {
  for (const name of pointersOf(publication)) {
    const link = join(dirname(folder), name)
    const shown = await readShown(link)
    const isOlder =
      shown !== undefined && Date.parse(shown.startedAt) > Date.parse(publication.facts.startedAt)
    if (!isOlder) await replaceLink(link, basename(folder))
  }
}

/** Reads the manifest a link leads to; undefined if it leads to no export of ours. */
async function readShown(link: string) {
  const target = await readlink(link).catch(() => undefined)
  return target === undefined
    ? undefined
    : await readManifest(join(dirname(link), target)).catch(() => undefined)
}

/**
 * Rejects a root that already shows another workspace. Two workspaces may be allowed the same root, and
 * `latest` must not alternate between their records.
 * @throws {ForeignWarehouseError}
 */
export async function refuseForeign({ workspace }: Publication, folder: string): Promise<void> {
  const root = dirname(folder)
  const shown = await readShown(join(root, 'latest' satisfies PointerName))
  if (shown === undefined || shown.workspace === workspace) return
  throw new ForeignWarehouseError(
    `${root} holds the exports of workspace ${shown.workspace}, not ${workspace}. Nothing was written: name another` +
      ' folder (--out).',
  )
}
