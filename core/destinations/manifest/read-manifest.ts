import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FileStore } from '../../storage/file-store.ts'
import { manifestName, manifestSchema, type Manifest } from './manifest.ts'
import { orMissing } from '../../storage/system-errors.ts'

/** The folder has a manifest that cannot be parsed. */
export class MalformedManifestError extends Error {
  override readonly name = 'MalformedManifestError'
  readonly retryable = false
}

/**
 * Reads the manifest of an export's folder; undefined if there is none.
 * @throws {MalformedManifestError}
 */
export async function readManifest(folder: string): Promise<Manifest | undefined> {
  const path = join(folder, manifestName)
  const text = await orMissing(readFile(path, 'utf8'))
  return text === undefined ? undefined : parseManifest(text, path)
}

/**
 * Reads the manifest of an export's folder in a store; undefined if there is none.
 * @throws {MalformedManifestError}
 */
export async function readStoredManifest(store: FileStore, folder: string): Promise<Manifest | undefined> {
  const path = `${folder}/${manifestName}`
  const stored = await store.read(path)
  return stored && parseManifest(stored.text, store.locate(path))
}

/**
 * @param where its path or address, for messages
 * @throws {MalformedManifestError}
 */
function parseManifest(text: string, where: string): Manifest {
  const parsed = manifestSchema.safeParse(parseJson(text, where))
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]!
  throw new MalformedManifestError(
    `${where} is not a manifest of this connector: ${issue.path.join('.')} ${issue.message}.`,
  )
}

function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (cause) {
    throw new MalformedManifestError(`${path} is not JSON.`, { cause })
  }
}
