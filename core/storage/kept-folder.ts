import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { copyFile, mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { z } from 'zod'
import { temporaryName } from './durable.ts'
import { type FileStore, StoreAwayError } from './file-store.ts'
import { orMissing } from './system-errors.ts'

/**
 * A folder that the steps of a run hand to each other through a file store, on whatever machine each of them runs. A step
 * checks it out into a local folder of its own, works there as on any folder, and keeps what it has changed.
 *
 * The store has an index, which names an immutable object for each file; the folder is what its index says. The index
 * moves only from the version that was checked out, so nothing appears of a step that was given up and wakes after
 * another one has changed the folder.
 */
export interface CheckedOut {
  /** Whether the store has this folder. */
  readonly exists: boolean
  /**
   * Keeps the files that were changed and removed since the folder was checked out or kept last. Everyone sees them when
   * the promise resolves.
   *
   * @throws {SupersededFolderError}
   * @throws {FolderGoneError}
   */
  keep(): Promise<void>
  /**
   * Removes the objects that the index does not name: those of steps that were killed while they kept something. A step
   * that has put one and wakes after this finds itself superseded, so the index never names what was removed.
   */
  prune(): Promise<void>
}

/** The local folder is gone, as on a disk that was cleaned up: what is missing there was not removed by the step. */
export class FolderGoneError extends Error {
  override readonly name = 'FolderGoneError'
  /** The next attempt checks it out again. */
  readonly retryable = true
  constructor({ folder }: { folder: string }) {
    super(`${folder} was removed while a step worked in it. Nothing of it was kept; the step is tried again.`)
  }
}

/** Another step has changed the folder since it was checked out. */
export class SupersededFolderError extends Error {
  override readonly name = 'SupersededFolderError'
  /** The next attempt checks out what is there by then. */
  readonly retryable = true
  constructor({ folder }: { folder: string }) {
    super(
      `Another step has changed ${folder} since this one began, so none of the files of this one were kept. It is tried ` +
        'again with those that are there now.',
    )
  }
}

// Loose, so that a worker keeps what one of a later version has added.
const entrySchema = z.looseObject({ object: z.string(), sha256: z.string(), bytes: z.number() })
const indexSchema = z.looseObject({
  /** Counts the changes, except those to files that several steps at once may change. */
  version: z.number(),
  /** Counts the times that objects without a name were removed: nobody adds one that was put before. */
  prunes: z.number().default(0),
  files: z.record(z.string(), entrySchema),
})
type Entry = z.infer<typeof entrySchema>
type Index = z.infer<typeof indexSchema>

const indexName = 'folder.json'
const empty: Index = { version: 0, prunes: 0, files: {} }
/** More tries than there are steps at once. */
const mostTries = 20

interface CheckOut {
  store: FileStore
  /** The folder's path in the store. */
  path: string
  /** The local folder. */
  to: string
  /** Which files to fetch; the others are left as they are in the store. Default: all. */
  only?: ((name: string) => boolean) | undefined
  /** Files that steps at the same time change, such as logs: others may change those since. */
  concurrent?: ReadonlySet<string> | undefined
  /** Local files that are not the folder's: never kept, never removed. */
  ignored?: ReadonlySet<string> | undefined
  /** A file that is there as long as nobody cleans up the disk: without it, a missing file was not removed by the step. */
  witness?: string | undefined
}

/**
 * Makes the local folder have exactly the files that are kept, or the wanted ones of them.
 *
 * @throws {StoreAwayError | StoreRefusedError}
 */
export async function checkOut(options: CheckOut): Promise<CheckedOut> {
  const { store, path, only = () => true, concurrent = new Set(), witness } = options
  let base: Index = empty
  let exists = false
  for (let tries = 1; ; tries += 1) {
    const present = await readIndex(store, path)
    base = present?.index ?? empty
    exists = present !== undefined
    if (!exists || (await fetchAll({ ...options, only, index: base }))) break
    if (tries === mostTries)
      throw new StoreAwayError(
        `${store.locate(path)} lacks files that its index names. The call is repeated.`,
      )
  }
  const fetched = new Set(Object.keys(base.files).filter(only))
  const seen = await stampsOf(options)
  const own = new Set<string>()
  return {
    exists,
    async keep() {
      const local = await stampsOf(options)
      const changed = [...local].filter(([name, stamp]) => seen.get(name) !== stamp).map(([name]) => name)
      const removed = [...fetched].filter((name) => !local.has(name))
      if (witness !== undefined && (await orMissing(stat(witness))) === undefined)
        throw new FolderGoneError({ folder: options.to })
      const added: Record<string, Entry> = {}
      for (const name of changed) {
        const entry = await putFile({ ...options, name, before: base.files[name] })
        if (entry === undefined) continue
        added[name] = entry
        own.add(entry.object)
      }
      const names = [...Object.keys(added), ...removed]
      if (names.length > 0) {
        const before = base.files
        base = await moveIndex({ ...options, concurrent, base, added, removed, own })
        for (const name of names) await dropObject(store, before[name])
      }
      for (const name of removed) fetched.delete(name)
      for (const name of changed) {
        fetched.add(name)
        // Of a file that is being written, the next call keeps the rest.
        seen.set(name, local.get(name)!)
      }
    },
    async prune() {
      base = await prune({ store, path, base })
    },
  }
}

async function readIndex(store: FileStore, path: string) {
  const present = await store.read(`${path}/${indexName}`)
  return present && { index: indexSchema.parse(JSON.parse(present.text)), tag: present.tag }
}

/** Whether the store has the folder. */
export const isKept = async (store: FileStore, path: string): Promise<boolean> =>
  (await store.read(`${path}/${indexName}`)) !== undefined

/** The names of the kept folders in a folder. */
export async function keptFolders(store: FileStore, parent: string): Promise<string[]> {
  const root = `${parent}/`
  return (await store.list(parent)).flatMap(({ path }) => {
    const [name = '', file, ...more] = path.slice(root.length).split('/')
    return file === indexName && more.length === 0 ? [name] : []
  })
}

/** False if an object is missing: the index has moved on, and what it named is gone. */
async function fetchAll({
  store,
  to,
  only,
  index,
  ignored,
}: CheckOut & { index: Index; only: (name: string) => boolean }): Promise<boolean> {
  await mkdir(to, { recursive: true })
  for (const name of (await stampsOf({ to, ignored })).keys())
    if (index.files[name] === undefined) await rm(join(to, name), { force: true })
  for (const [name, entry] of Object.entries(index.files)) {
    if (name.split('/').includes('..')) throw new RangeError(`${name} is not a file of a folder`)
    const file = join(to, name)
    if (only(name) && (await hashOf(file)) !== entry.sha256)
      if (!(await fetchFile({ store, path: entry.object, to: file, entry }))) return false
  }
  return true
}

/**
 * Fetches a file as it is now; false if the store has none.
 *
 * @throws {StoreAwayError} what came is not what was kept
 */
export async function fetchFile(options: {
  store: FileStore
  path: string
  to: string
  entry?: Pick<Entry, 'sha256'>
}): Promise<boolean> {
  const { store, path, to, entry } = options
  const body = await store.open(path)
  if (body === undefined) return false
  await mkdir(dirname(to), { recursive: true })
  const temporary = temporaryName(to)
  try {
    await pipeline(body, createWriteStream(temporary))
    if (entry !== undefined && (await hashOf(temporary)) !== entry.sha256)
      throw new StoreAwayError(`${store.locate(path)} did not arrive whole. The call is repeated.`)
    await rename(temporary, to)
  } finally {
    await rm(temporary, { force: true })
  }
  return true
}

/** Keeps a file as a new object; undefined if it is as it was. */
async function putFile({
  store,
  path,
  to,
  name,
  before,
}: CheckOut & { name: string; before: Entry | undefined }): Promise<Entry | undefined> {
  // A log may grow meanwhile.
  const copy = temporaryName(join(to, 'kept'))
  try {
    await copyFile(join(to, name), copy)
    const sha256 = await hashOf(copy)
    if (sha256 === undefined || sha256 === before?.sha256) return undefined
    const object = `${path}/kept/${randomUUID()}/${name}`
    await store.put(object, copy)
    return { object, sha256, bytes: (await stat(copy)).size }
  } finally {
    await rm(copy, { force: true })
  }
}

/** Moves the index from `base`, together with what others have changed of the concurrent files. */
async function moveIndex(
  options: CheckOut & {
    concurrent: ReadonlySet<string>
    base: Index
    added: Readonly<Record<string, Entry>>
    removed: readonly string[]
    /** The objects that this step has put: an earlier call may have named them, and not heard of its success. */
    own: ReadonlySet<string>
  },
): Promise<Index> {
  const { store, path, concurrent, base, added, removed, own } = options
  const names = [...Object.keys(added), ...removed]
  const isExclusive = names.some((name) => !concurrent.has(name))
  for (let tries = 0; tries < mostTries; tries += 1) {
    const present = await readIndex(store, path)
    const now = present?.index ?? empty
    // The reply to the write before was lost, and others have changed other files on top of it.
    if (names.every((name) => now.files[name]?.object === added[name]?.object)) return now
    const isSuperseded =
      now.prunes !== base.prunes ||
      (isExclusive && now.version !== base.version) ||
      names.some((name) => {
        const object = now.files[name]?.object
        return object !== base.files[name]?.object && !own.has(object ?? '')
      })
    if (isSuperseded) {
      for (const [name, entry] of Object.entries(added))
        if (now.files[name]?.object !== entry.object) await dropObject(store, entry)
      throw new SupersededFolderError({ folder: store.locate(path) })
    }
    const files = { ...now.files, ...added }
    for (const name of removed) delete files[name]
    const next = { ...now, version: now.version + (isExclusive ? 1 : 0), files }
    if (await store.replace(`${path}/${indexName}`, JSON.stringify(next), present?.tag)) return next
  }
  throw new StoreAwayError(`${store.locate(path)} changes too often to be kept. The call is repeated.`)
}

async function prune({
  store,
  path,
  base,
}: Pick<CheckOut, 'store' | 'path'> & { base: Index }): Promise<Index> {
  // What is put after the index has moved is not in this list.
  const objects = (await store.list(`${path}/kept`)).map((file) => file.path)
  const without = ({ files }: Index) => {
    const named = new Set(Object.values(files).map(({ object }) => object))
    return objects.filter((object) => !named.has(object))
  }
  for (let tries = 0; tries < mostTries; tries += 1) {
    const present = await readIndex(store, path)
    if (present === undefined || without(present.index).length === 0) return base
    const next = { ...present.index, prunes: present.index.prunes + 1 }
    if (!(await store.replace(`${path}/${indexName}`, JSON.stringify(next), present.tag))) continue
    for (const object of without(next)) await dropObject(store, { object })
    return { ...base, prunes: next.prunes }
  }
  return base
}

/** An object that no index names is only in the way. */
async function dropObject(store: FileStore, entry: Pick<Entry, 'object'> | undefined): Promise<void> {
  if (entry !== undefined) await store.remove(entry.object).catch(() => undefined)
}

/** The files in a folder, without temporary ones, each with what changes when it is written. */
async function stampsOf({ to, ignored = new Set() }: Pick<CheckOut, 'to' | 'ignored'>) {
  const entries = (await orMissing(readdir(to, { recursive: true, withFileTypes: true }))) ?? []
  const stamps = new Map<string, string>()
  for (const entry of entries) {
    const name = relative(to, join(entry.parentPath, entry.name)).split(sep).join('/')
    if (!entry.isFile() || name.startsWith('.') || ignored.has(name)) continue
    const found = await orMissing(stat(join(to, name)))
    if (found !== undefined) stamps.set(name, `${found.ino} ${found.size} ${found.mtimeMs}`)
  }
  return stamps
}

async function hashOf(file: string): Promise<string | undefined> {
  if ((await orMissing(stat(file))) === undefined) return undefined
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) hash.update(chunk)
  return hash.digest('hex')
}
