import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { pageName } from '../runs/view/view.ts'
import { toReportPage } from '../runs/view/html.ts'
import { writeNew } from '../storage/durable.ts'
import type { Destination, Publication } from './destination.ts'
import { PublishedOtherwiseError } from './errors.ts'
import { toManifestView } from './manifest/manifest-view.ts'
import { isSameRead, type Manifest } from './manifest/manifest.ts'
import { rowsOf } from './parts/check-parts.ts'
import { isSameParts } from './parts/read-parts.ts'

export type StagedFiles = Pick<Manifest, 'tables' | 'rejected' | 'missing' | 'dialect'> & {
  /** With the values that only this destination cannot hold. */
  drift?: Manifest['drift']
}

/** What differs between destinations that keep files. */
export interface FileFormat {
  name: Destination['name']
  /** The folder that holds the resources' folders. */
  root: (publication: Publication) => string
  /** Writes the files into a folder private to this publication and counts what arrived. */
  stage: (publication: Publication, folder: string) => Promise<StagedFiles>
}

/**
 * Published exports never change; publishing again requires the same files of the same read and workspace.
 * @throws {PublishedOtherwiseError}
 */
export function refuseOtherwise(of: { publication: Publication; existing: Manifest; where: string }): void {
  const { publication, existing, where } = of
  const { rejected = [], missing, forExcel = false } = publication
  const isSame =
    existing.workspace === publication.workspace &&
    isSameRead(publication, existing) &&
    isSameParts(publication, existing.tables) &&
    existing.rejected.rows === rowsOf(rejected) &&
    existing.missing?.rows === (missing && rowsOf(missing.parts)) &&
    (existing.dialect?.formulaGuard ?? false) === forExcel
  if (isSame) return
  throw new PublishedOtherwiseError(
    `${where} holds this run already, of another read or with other files than these parts make. What is` +
      ' published is never changed: start a new run, or publish to another folder (--out).',
  )
}

/** Writes the page that shows the manifest. It is written first, because the manifest holds its checksum. */
export async function writePage({
  manifest,
  folder,
}: {
  manifest: Manifest
  folder: string
}): Promise<NonNullable<Manifest['report']>> {
  const page = Buffer.from(toReportPage(toManifestView(manifest)))
  await writeNew(join(folder, pageName), page)
  return {
    path: pageName,
    bytes: page.length,
    sha256: createHash('sha256').update(page).digest('hex'),
  }
}
