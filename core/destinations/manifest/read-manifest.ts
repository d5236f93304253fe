import { posix } from 'node:path'
import type { FileStore } from '../../storage/file-store.ts'
import { createFolderStore } from '../../storage/folder-store.ts'
import { manifestName, manifestSchema, type Manifest } from './manifest.ts'

/** The folder has a manifest that cannot be parsed. */
export class MalformedManifestError extends Error {
  override readonly name = 'MalformedManifestError'
  readonly retryable = false
}

/**
 * Reads the manifest of an export's folder; undefined if there is none.
 * @throws {MalformedManifestError}
 */
export const readManifest = (folder: string): Promise<Manifest | undefined> =>
  readStoredManifest(createFolderStore(folder), '')

/**
 * Reads the manifest of an export in a store; undefined if there is none.
 * @throws {MalformedManifestError}
 */
export async function readStoredManifest(store: FileStore, path: string): Promise<Manifest | undefined> {
  const file = posix.join(path, manifestName)
  const text = await store.readText(file)
  if (text === undefined) return undefined
  const parsed = manifestSchema.safeParse(parseJson(text, store.locate(file)))
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]!
  throw new MalformedManifestError(
    `${store.locate(file)} is not a manifest of this connector: ${issue.path.join('.')} ${issue.message}.`,
  )
}

function parseJson(text: string, where: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (cause) {
    throw new MalformedManifestError(`${where} is not JSON.`, { cause })
  }
}
