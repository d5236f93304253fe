import { createWriteStream } from 'node:fs'
import { link, mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, relative, sep } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { replaceFile, syncPath, temporaryName, writeNew } from './durable.ts'
import type { FileStore } from './file-store.ts'
import { createKeyedMutex } from './keyed-mutex.ts'
import { StoreAwayError } from './store-errors.ts'
import { isSystemError, orMissing } from './system-errors.ts'

/**
 * The files that the steps of a run leave to each other, on whatever machine each of them runs.
 *
 * For a worker alone, its data folder is all there is. Several workers keep these files in their file store under the
 * same paths, and each one's data folder is a copy of what it needed, which may be lost at any moment.
 *
 * Paths are absolute and lie in the data folder: a step works on local files, fetches what it is about to read and
 * keeps what it has written. A kept file never changes, except through `update`, so a local copy is never out of date. But
 * a file that was never kept passes for one: what is fetched has a name that nothing else gets, and a text under a fixed
 * name is read with `read`.
 *
 * @throws {StoreAwayError | StoreRefusedError}
 */
export interface SharedFolder {
  /** Whether workers on other machines see these files too. */
  readonly isShared: boolean
  /**
   * Makes a kept file be there. Does nothing if it is kept nowhere: reading it then fails as for any missing file.
   *
   * @param options.bytes a shorter local copy does not count
   * @throws the signal's reason if it is aborted in the meantime
   */
  fetch(file: string, options?: { bytes?: number; signal?: AbortSignal | undefined }): Promise<void>
  /** Keeps a complete local file of any size. */
  keep(file: string): Promise<void>
  /** Keeps a small text, whole or not at all, unless the path has another one: false then. */
  create(file: string, text: string): Promise<boolean>
  /** A small text as it is now; undefined if there is none. */
  read(file: string): Promise<string | undefined>
  /** Changes a small text; of changes at the same time, each is made to the result of the one before. */
  update(file: string, change: (text: string | undefined) => string): Promise<void>
  /** The names of the files in a folder, without those of its folders. */
  list(folder: string): Promise<string[]>
}

/** @param options.store where several workers keep their files; undefined for a worker alone */
export function createSharedFolder(options: { dataDir: string; store: FileStore | undefined }): SharedFolder {
  const { dataDir, store } = options
  return store === undefined ? localFolder() : storedFolder({ dataDir, store })
}

const mutex = createKeyedMutex()

function localFolder(): SharedFolder {
  return {
    isShared: false,
    fetch: () => Promise.resolve(),
    keep: () => Promise.resolve(),
    create: createLocally,
    read: readText,
    update: (file, change) =>
      mutex.runExclusive(file, async () => replaceFile(file, change(await readText(file)))),
    async list(folder) {
      const entries = (await orMissing(readdir(folder, { withFileTypes: true }))) ?? []
      return entries.filter((entry) => entry.isFile()).map(({ name }) => name)
    },
  }
}

/** More tries than there are writers: each failure means that another one succeeded. */
const mostTries = 50

function storedFolder({ dataDir, store }: { dataDir: string; store: FileStore }): SharedFolder {
  const pathOf = (file: string) => relative(dataDir, file).split(sep).join('/')
  return {
    isShared: true,
    async fetch(file, { bytes = 0, signal } = {}) {
      const local = await orMissing(stat(file))
      if (local !== undefined && local.size >= bytes) return
      const body = await store.open(pathOf(file))
      if (body === undefined) return
      await mkdir(dirname(file), { recursive: true })
      const temporary = temporaryName(file)
      try {
        await pipeline(body, createWriteStream(temporary), { signal })
        const { size } = await stat(temporary)
        if (size < bytes)
          throw new StoreAwayError(
            `${store.locate(pathOf(file))} ended after ${size} of ${bytes} bytes. The call is repeated.`,
          )
        // After a crash of the machine, a file of zeros must not pass for the copy.
        await syncPath(temporary)
        await rename(temporary, file)
      } catch (error) {
        signal?.throwIfAborted()
        throw error
      } finally {
        await rm(temporary, { force: true })
      }
    },
    keep: (file) => store.put(pathOf(file), file),
    async create(file, text) {
      const isCreated = await store.create(pathOf(file), text)
      if (isCreated) await replaceFile(file, text)
      return isCreated
    },
    read: (file) => store.readText(pathOf(file)),
    async update(file, change) {
      for (let tries = 0; tries < mostTries; tries += 1) {
        const present = await store.read(pathOf(file))
        if (await store.replace(pathOf(file), change(present?.text), present?.tag)) return
      }
      throw new StoreAwayError(
        `${store.locate(pathOf(file))} changes too often to be written. The call is repeated.`,
      )
    },
    async list(folder) {
      const root = `${pathOf(folder)}/`
      const names = (await store.list(pathOf(folder))).map(({ path }) => path.slice(root.length))
      return names.filter((name) => !name.includes('/'))
    },
  }
}

async function createLocally(file: string, text: string): Promise<boolean> {
  await mkdir(dirname(file), { recursive: true })
  const temporary = temporaryName(file)
  try {
    await writeNew(temporary, text)
    await link(temporary, file)
    await syncPath(dirname(file))
    return true
  } catch (error) {
    if (!isSystemError(error, 'EEXIST')) throw error
    return (await readText(file)) === text
  } finally {
    await rm(temporary, { force: true })
  }
}

const readText = (file: string): Promise<string | undefined> => orMissing(readFile(file, 'utf8'))
