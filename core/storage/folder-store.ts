import { createHash } from 'node:crypto'
import { copyFile, link, mkdir, open, readdir, readFile, readlink, rename, rm, stat } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { replace, replaceFile, replaceLink, syncPath, temporaryName, writeNew } from './durable.ts'
import type { FileStore, TaggedText } from './file-store.ts'
import { createKeyedMutex } from './keyed-mutex.ts'
import { isSystemError, orMissing } from './system-errors.ts'

const mutex = createKeyedMutex()

/** A file store in a folder, which one process at a time writes. */
export function createFolderStore(folder: string): FileStore {
  const locate = (path: string) => join(folder, path)
  const toPath = (file: string) => relative(folder, file).split(sep).join('/')
  const read = async (path: string): Promise<TaggedText | undefined> => {
    const text = await orMissing(readFile(locate(path), 'utf8'))
    return text === undefined ? undefined : { text, tag: createHash('sha256').update(text).digest('hex') }
  }
  const readLink = (path: string) => readlink(locate(path)).catch(() => undefined)
  /** Writes the text if `isExpected` accepts the present version; the same text is never a conflict. */
  const write = (path: string, text: string, isExpected: (tag: string | undefined) => boolean) =>
    mutex.runExclusive(locate(path), async () => {
      const present = await read(path)
      if (!isExpected(present?.tag)) return present?.text === text
      if (present !== undefined) {
        await replaceFile(locate(path), text)
        return true
      }
      return (await createWhole(locate(path), text)) || (await read(path))?.text === text
    })
  return {
    locate,
    pathOf(location) {
      const path = toPath(location)
      return path === '' || path.startsWith('..') || !isAbsolute(location) ? undefined : path
    },
    async put(path, file, { signal } = {}) {
      signal?.throwIfAborted()
      const place = locate(path)
      if (file === place) {
        await syncPath(place)
        return await syncPath(dirname(place))
      }
      await replace(place, async (temporary) => {
        await copyFile(file, temporary)
        await syncPath(temporary)
      })
    },
    create: (path, text) => write(path, text, (tag) => tag === undefined),
    read,
    readText: async (path) => (await read(path))?.text,
    replace: (path, text, expected) => write(path, text, (tag) => tag === expected),
    async open(path) {
      const file = await orMissing(open(locate(path)))
      return file?.createReadStream({ highWaterMark: 1 << 20 })
    },
    async list(path) {
      const entries = await orMissing(readdir(locate(path), { recursive: true, withFileTypes: true }))
      const files = (entries ?? []).filter((entry) => entry.isFile())
      return await Promise.all(
        files.map(async ({ parentPath, name }) => {
          const { size: bytes } = await stat(join(parentPath, name))
          return { path: toPath(join(parentPath, name)), bytes }
        }),
      )
    },
    remove: (path) => rm(locate(path), { force: true }),
    folder: {
      async moveIn(path, from) {
        await rename(from, locate(path))
        await syncPath(dirname(locate(path)))
      },
      readLink,
      async linkedFrom(path) {
        const entries = (await orMissing(readdir(locate(path), { withFileTypes: true }))) ?? []
        const links = entries.filter((entry) => entry.isSymbolicLink()).map(({ name }) => join(path, name))
        const targets = await Promise.all(links.map(readLink))
        return targets.map((target) => toPath(resolve(locate(path), target ?? '')))
      },
      replaceLink: (path, target, before) =>
        mutex.runExclusive(locate(path), async () => {
          if ((await readLink(path)) !== before) return false
          await replaceLink(locate(path), target)
          return true
        }),
    },
  }
}

/** Creates a file, whole or not at all; false if there is one, also of another process. */
async function createWhole(file: string, text: string): Promise<boolean> {
  await mkdir(dirname(file), { recursive: true })
  const temporary = temporaryName(file)
  try {
    await writeNew(temporary, text)
    await link(temporary, file)
    await syncPath(dirname(file))
    return true
  } catch (error) {
    if (isSystemError(error, 'EEXIST')) return false
    throw error
  } finally {
    await rm(temporary, { force: true })
  }
}
