import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createKeyedMutex } from '../../storage/keyed-mutex.ts'
import { refuseLinkOut } from '../../storage/inside.ts'
import { isSystemError } from '../../storage/system-errors.ts'
import type { Publication } from '../destination.ts'
import { AlreadyPublishedError, UnwritableError } from '../errors.ts'
import { certificateName, certificateOf, stageCertificate } from '../files/csv.ts'
import { exportPath, keep, placeIn, withStaged } from '../files/publish.ts'
import { manifestName, manifestSchema, type Manifest } from '../manifest.ts'
import { rowsOf, sumBytes } from '../parts.ts'
import type { Database } from './tables.ts'

// The certificate of an export in a warehouse is a file, like any other: `_exports` has its place and its checksum.

/** What `_exports` says of the certificate; the file comes after the commit. */
export async function describeCertificate(
  { certificates }: Pick<Database, 'certificates'>,
  publication: Publication,
): Promise<Pick<Manifest, 'certificate'>> {
  const { certificate } = publication
  if (certificate === undefined) return {}
  const rows = rowsOf(certificate) + 2
  const file = { path: certificateName, rows, ...(await sumBytes(certificateOf(publication))) }
  return { certificate: { rows, files: [file], folder: exportPath(publication, certificates) } }
}

// An abandoned attempt may still be writing when the next one begins, which removes staged files.
const mutex = createKeyedMutex()

/**
 * Writes the certificate of an export, and beside it the manifest that `_exports` has, whose place it returns. Also if the run
 * was published before: that attempt may have died right after its commit.
 */
export async function keepCertificate(
  publication: Publication,
  manifest: Manifest,
): Promise<string | undefined> {
  const { folder } = manifest.certificate ?? {}
  if (folder === undefined) return undefined
  const local = join(publication.folder, folder)
  const undone = 'The rows are in the warehouse, and only their certificate is missing'
  return await mutex.runExclusive(local, () =>
    write(publication, { manifest, folder, local }).catch((error: unknown) => {
      throw isSystemError(error) ? new UnwritableError({ where: local, cause: error, undone }) : error
    }),
  )
}

async function write(
  publication: Publication,
  { manifest, folder, local }: { manifest: Manifest; folder: string; local: string },
): Promise<string> {
  const { store, path } = placeIn(publication, folder)
  await refuseLinkOut({ root: publication.folder, path: local })
  return await withStaged(local, async (staged) => {
    const { sha256 } = await stageCertificate({ ...publication, facts: manifest }, staged)
    if (sha256 !== manifest.certificate?.files[0]?.sha256)
      throw new AlreadyPublishedError(
        `The warehouse has ${manifest.resource} of this run with another certificate than these parts make. What is published is` +
          ' never changed: start a new run.',
      )
    // In the order in which a repeated attempt finds it in `_exports`: the page of the run has the checksum.
    const text = JSON.stringify(manifestSchema.parse(manifest), null, 2)
    await writeFile(join(staged, manifestName), `${text}\n`)
    await keep({ publication, store, path }, staged, [{ path: certificateName }, { path: manifestName }])
    return store.locate(`${path}/${manifestName}`)
  })
}
