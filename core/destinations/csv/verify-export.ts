import { readdir } from 'node:fs/promises'
import { createDiskSet } from '../../storage/disk-set.ts'
import { manifestName, type Manifest } from '../manifest/manifest.ts'
import { MalformedManifestError, readManifest } from '../manifest/read-manifest.ts'
import { checkFile } from './check-file.ts'
import { createLineCheck, createTableCheck } from './check-rows.ts'
import { dialectOf, toHeader } from './dialect.ts'
import { missingHeader } from './stage-notes.ts'

export interface Verified {
  /** Undefined if the folder has no readable manifest. */
  manifest: Manifest | undefined
  /** One sentence each; empty if the folder holds exactly what was published. */
  problems: string[]
}

/**
 * Checks a folder of CSV files against its manifest, offline: every file's bytes, checksum, header and rows;
 * no extra files; unique ids; a parent for every child row. Memory use is constant, whatever the size.
 */
export async function verifyExport(folder: string): Promise<Verified> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
    throw error
  })
  if (names === undefined) return { manifest: undefined, problems: [`There is no folder ${folder}.`] }
  let manifest: Manifest | undefined
  try {
    manifest = await readManifest(folder)
  } catch (error) {
    if (error instanceof MalformedManifestError) return { manifest, problems: [error.message] }
    throw error
  }
  if (manifest === undefined)
    return {
      manifest,
      problems: [`${folder} has no ${manifestName}: it is no export, or was never published.`],
    }
  return { manifest, problems: [...checkNames(names, manifest), ...(await checkFiles(folder, manifest))] }
}

function checkNames(names: readonly string[], manifest: Manifest): string[] {
  const files = [...manifest.tables, manifest.rejected, ...missingIn(manifest)].flatMap(({ files }) => files)
  const page = manifest.report === undefined ? [] : [manifest.report]
  const known = new Set([manifestName, ...[...files, ...page].map((file) => file.path)])
  return names
    .filter((name) => !known.has(name))
    .map((name) => `${name} lies in the folder, and the manifest does not name it.`)
}

const missingIn = ({ missing }: Manifest) => (missing === undefined ? [] : [missing])

async function checkFiles(folder: string, manifest: Manifest): Promise<string[]> {
  const problems: string[] = []
  const dialect = manifest.dialect ?? dialectOf(false)
  const keys = createDiskSet({ cacheMiB: 64 })
  try {
    for (const table of manifest.tables) {
      const header = toHeader(dialect, table.columns)
      for (const file of table.files) {
        const check = createTableCheck({ table, keys, delimiter: dialect.delimiter })
        problems.push(...(await checkFile({ folder, file, header, check })))
      }
    }
    for (const file of manifest.rejected.files)
      problems.push(...(await checkFile({ folder, file, header: '', check: createLineCheck() })))
    for (const file of missingIn(manifest).flatMap(({ files }) => files))
      problems.push(...(await checkFile({ folder, file, header: missingHeader, check: createLineCheck(1) })))
    // Readers trust a page that says `proven`, so it is checked too.
    if (manifest.report !== undefined) {
      const check = { add: () => undefined, end: () => ({ rows: 0, problems: [] }) }
      problems.push(
        ...(await checkFile({ folder, file: { ...manifest.report, rows: 0 }, header: '', check })),
      )
    }
  } finally {
    keys.close()
  }
  return problems
}
