import { createWriteStream } from 'node:fs'
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, posix, relative, sep } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createFolderStore } from './folder-store.ts'
import { replaceFile, syncPath, temporaryName } from './durable.ts'
import { type FileStore, StoreAwayError } from './file-store.ts'
import { orMissing } from './system-errors.ts'

/**
 * The files that the steps of a run leave to each other: a file store, and a folder that has copies of its files under
 * the same paths. For a worker alone, the store is that folder. Several workers have their store in common, and the
 * folder of each may be lost at any moment.
 *
 * Paths are absolute and lie in the folder. Files that are kept never change, so a copy is always current; texts
 * change only through `update`, and are read from the store.
 *
 * @throws {StoreAwayError | StoreRefusedError}
 */
export interface SharedFolder {
  /** Whether workers on other machines see these files too. */
  readonly isShared: boolean
  /**
   * Copies a kept file to the folder, unless it is there with this size. Does nothing if it is kept nowhere: reading it
   * then fails as for any missing file.
   *
   * @param options.changes whether the file may have changed, so that a copy says nothing
   * @throws the signal's reason if it is aborted in the meantime
   */
  fetch(
    file: string,
    options?: { bytes?: number; changes?: boolean; signal?: AbortSignal | undefined },
  ): Promise<void>
  /** Keeps a complete file of the folder, of any size. */
  keep(file: string): Promise<void>
  /** Keeps a small text, whole or not at all, unless the path has another one: false then. */
  create(file: string, text: string): Promise<boolean>
  /** A small text as it is now; undefined if there is none. */
  read(file: string): Promise<string | undefined>
  /** Changes a small text; of changes at the same time, each is made to the result of the one before. */
  update(file: string, change: (text: string | undefined) => string): Promise<void>
  /** The names of the files in a folder, without those of its folders. */
  list(folder: string): Promise<string[]>
  /** Every file of this name in a folder and in its folders. */
  find(folder: string, name: string): Promise<string[]>
  /**
   * Removes the copies in each folder of `root` that was last used before a moment (ms since 1970); what is kept nowhere
   * else stays. What cannot be removed is left for the next time.
   */
  removeCopies(root: string, options: { before: number }): Promise<void>
}

/** More tries than there are writers: each failure means that another one succeeded. */
const mostTries = 50

/** The files of a store, with copies in a folder. Without a store, the folder is it. */
export function cached(folder: string, store: FileStore = createFolderStore(folder)): SharedFolder {
  const pathOf = (file: string) => relative(folder, file).split(sep).join('/')
  const isShared = store.locate('') !== join(folder, '')
  return {
    isShared,
    async fetch(file, { bytes, changes = false, signal } = {}) {
      if (!isShared) return
      const copy = await orMissing(stat(file))
      if (!changes && copy !== undefined && (bytes === undefined || copy.size === bytes)) return
      const body = await store.open(pathOf(file))
      if (body === undefined) return
      await mkdir(dirname(file), { recursive: true })
      const temporary = temporaryName(file)
      try {
        await pipeline(body, createWriteStream(temporary), { signal })
        const { size } = await stat(temporary)
        if (size < (bytes ?? 0))
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
      if (isCreated && isShared) await replaceFile(file, text)
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
    async list(of) {
      const root = `${pathOf(of)}/`
      const names = (await store.list(pathOf(of))).map(({ path }) => path.slice(root.length))
      return names.filter((name) => !name.includes('/'))
    },
    async find(below, name) {
      const paths = (await store.list(pathOf(below))).map(({ path }) => path)
      return paths.filter((path) => posix.basename(path) === name).map((path) => join(folder, path))
    },
    async removeCopies(root, { before }) {
      if (!isShared) return
      for (const { name } of await foldersIn(root)) {
        const copies = join(root, name)
        if ((await usedAt(copies).catch(() => Infinity)) >= before) continue
        const kept = new Set((await store.list(pathOf(copies))).map(({ path }) => path))
        const files = (await createFolderStore(folder).list(pathOf(copies))).map(({ path }) => path)
        const copied = files.filter((path) => kept.has(path))
        const gone = copied.length === files.length ? [copies] : copied.map((path) => join(folder, path))
        for (const path of gone) await rm(path, { recursive: true }).catch(() => undefined)
      }
    },
  }
}

const foldersIn = async (folder: string, options: { recursive?: boolean } = {}) =>
  (await readdir(folder, { ...options, withFileTypes: true })).filter((entry) => entry.isDirectory())

/** When a file of the folder was last written, or fetched for a step. */
async function usedAt(folder: string): Promise<number> {
  const folders = (await foldersIn(folder, { recursive: true })).map((one) => join(one.parentPath, one.name))
  const times = await Promise.all([folder, ...folders].map(async (path) => (await stat(path)).mtimeMs))
  return Math.max(...times)
}
