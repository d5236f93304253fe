import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, open, readdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { orMissing } from './system-errors.ts'

/**
 * Replaces a small file by rename: readers see the old or the new content, never a mix, even after a crash.
 */
export async function replaceFile(path: string, text: string): Promise<void> {
  await replace(path, (temporary) => writeNew(temporary, text))
}

/** Reads a JSON file; undefined if there is none. */
export async function readJson<T>(path: string): Promise<T | undefined> {
  const text = await orMissing(readFile(path, 'utf8'))
  return text === undefined ? undefined : (JSON.parse(text) as T)
}

/** Writes a small file that must not exist yet into an existing folder, and fsyncs it. */
export async function writeNew(path: string, text: string | Uint8Array): Promise<void> {
  await using file = await open(path, 'wx')
  await file.writeFile(text)
  await file.sync()
}

/** Changes the target of a relative symbolic link, by rename. */
export async function replaceLink(path: string, target: string): Promise<void> {
  await replace(path, (temporary) => symlink(target, temporary))
}

/** Replaces a file by rename, by what `make` has put under a temporary name beside it. */
export async function replace(path: string, make: (temporary: string) => Promise<unknown>): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  const temporary = temporaryName(path)
  try {
    await make(temporary)
    await rename(temporary, path)
    await syncPath(dirname(path))
  } finally {
    await rm(temporary, { force: true })
  }
}

/** Fsyncs a file, or the entries of a folder. */
export async function syncPath(path: string): Promise<void> {
  await using file = await open(path, 'r')
  await file.sync()
}

/** A unique, recognizably temporary name beside a path. */
export const temporaryName = (path: string) =>
  join(dirname(path), `.${basename(path)}.${randomUUID().slice(0, 8)}.tmp`)

/** Removes the temporary files of a path that a crash left. */
export async function removeTemporaries(path: string): Promise<void> {
  const start = `.${basename(path)}.`
  for (const name of await readdir(dirname(path))) {
    if (name.startsWith(start) && /^[0-9a-f]{8}\.tmp$/.test(name.slice(start.length)))
      await rm(join(dirname(path), name), { recursive: true, force: true })
  }
}

/** A folder that is removed with what is in it. */
export interface TemporaryFolder extends AsyncDisposable {
  path: string
}

const dayMs = 86_400_000

/** A new folder in another one, for a piece of work. Those that killed processes left there are removed after a day. */
export async function temporaryFolder(within: string, prefix: string): Promise<TemporaryFolder> {
  await mkdir(within, { recursive: true })
  for (const name of await readdir(within)) {
    if (!name.startsWith(prefix)) continue
    const path = join(within, name)
    const { mtimeMs = Infinity } = (await orMissing(stat(path))) ?? {}
    if (mtimeMs < Date.now() - dayMs) await rm(path, { recursive: true, force: true })
  }
  const path = await mkdtemp(join(within, prefix))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}
