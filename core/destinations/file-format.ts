import type { Destination, Publication } from './destination.ts'
import { PublishedOtherwiseError } from './errors.ts'
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
