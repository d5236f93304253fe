import { randomUUID } from 'node:crypto'
import { access, mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join, posix } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { toFileName } from '../storage/file-name.ts'
import type { FileStore } from '../storage/file-store.ts'
import { checkOut, fetchFile, keptFolders, type CheckedOut } from '../storage/kept-folder.ts'
import { proveOnce } from '../storage/prove-store.ts'
import { changeRunFiles } from './run-files.ts'

/** The folders of the runs that have one each. */
export const runRooms = ['imports', 'recoveries'] as const
export type RunRoom = (typeof runRooms)[number]

/**
 * The files that a step of an import or a recovery works on: those of the data folder for a worker alone. If several
 * workers share their files, it is a folder of this step alone, with what the step has fetched.
 */
export interface StepFolder extends AsyncDisposable {
  /** Used as the data folder. */
  readonly dataDir: string
  /**
   * Fetches the files of a run, to be kept again if they change; whether there is such a run.
   *
   * @param options.only default: all files
   */
  fetchRun(options: { room: RunRoom; run: string; only?: (name: string) => boolean }): Promise<boolean>
  /** Fetches the files of all runs. */
  fetchRuns(): Promise<void>
  /** Fetches a single file, by its path relative to the data folder; does nothing if there is none. */
  fetchFile(path: string): Promise<void>
  /**
   * Keeps what has changed of the fetched runs. A step does so before it says that it is done.
   *
   * @throws {SupersededFolderError} another attempt has changed a run meanwhile
   * @throws {FolderGoneError} the folder was removed meanwhile
   */
  keep(): Promise<void>
  /** Removes what steps that were killed have left of the fetched runs, as far as the store permits; comes last in a run. */
  prune(): Promise<void>
  /** Keeps it every few seconds until it is disposed of, as far as the store permits. */
  keepEvery(ms: number): AsyncDisposable
}

/** The folder of a worker alone. */
const localFolder = (dataDir: string): StepFolder => ({
  dataDir,
  fetchRun: ({ room, run }) =>
    access(join(dataDir, room, toFileName(run))).then(
      () => true,
      () => false,
    ),
  fetchRuns: () => Promise.resolve(),
  fetchFile: () => Promise.resolve(),
  keep: () => Promise.resolve(),
  prune: () => Promise.resolve(),
  keepEvery: () => ({ [Symbol.asyncDispose]: () => Promise.resolve() }),
  [Symbol.asyncDispose]: () => Promise.resolve(),
})

/** What a sender notes every few seconds. */
const concurrent: ReadonlySet<string> = new Set([changeRunFiles.claims])

const ofStaging: ReadonlySet<string> = new Set([changeRunFiles.stagedChanges, changeRunFiles.decidedChanges])

/** Files that no step needs to know what was sent: the input, the rows as staged, and the sheets. */
export const isSmall = (name: string): boolean =>
  !name.includes('/') && !name.endsWith('.csv') && !ofStaging.has(name)

/** The folders of steps, in the data folder; what a worker that was killed left there is of no use. */
export const stepFolders = (dataDir: string): string => join(dataDir, 'steps')

/** @param options.store where several workers keep their files; undefined for a worker alone */
export function createStepFolder(options: { dataDir: string; store: FileStore | undefined }): StepFolder {
  const { store } = options
  if (store === undefined) return localFolder(options.dataDir)
  const dataDir = join(stepFolders(options.dataDir), randomUUID())
  const witness = join(dataDir, '.in-use')
  const runs = new Map<string, CheckedOut>()
  let keeping: Promise<void> = Promise.resolve()
  const keepAll = async () => {
    if (runs.size > 0) await proveOnce(store)
    for (const run of runs.values()) await run.keep()
  }
  /** One after the other: both would take the same changes for theirs. */
  const keep = () => {
    const kept = keeping.then(keepAll)
    keeping = kept.catch(() => undefined)
    return kept
  }
  const fetchFolder = async (path: string, only?: (name: string) => boolean) => {
    const known = runs.get(path)
    if (known !== undefined) return known.exists
    await mkdir(dirname(join(dataDir, path)), { recursive: true })
    if (runs.size === 0) await writeFile(witness, '')
    const fetched = await checkOut({ store, path, to: join(dataDir, path), only, concurrent, witness })
    runs.set(path, fetched)
    return fetched.exists
  }
  return {
    dataDir,
    fetchRun: ({ room, run, only }) => fetchFolder(`${room}/${toFileName(run)}`, only),
    async fetchRuns() {
      for (const room of runRooms)
        for (const name of await keptFolders(store, room)) await fetchFolder(`${room}/${name}`)
    },
    async fetchFile(path) {
      const name = posix.normalize(path)
      // What lies outside is refused where it is opened.
      if (/^(\.\.)?\//.test(name) || name.includes('\0')) return
      const to = join(dataDir, name)
      const isThere = await access(to).then(
        () => true,
        () => false,
      )
      if (!isThere) await fetchFile({ store, path: name, to })
    },
    keep,
    async prune() {
      await keeping
      // What stays is only in the way.
      for (const run of runs.values()) await run.prune().catch(() => undefined)
    },
    keepEvery(ms) {
      const ended = new AbortController()
      const loop = (async () => {
        while (!ended.signal.aborted) {
          await wait(ms, undefined, { signal: ended.signal }).catch(() => undefined)
          // The step keeps it at its end, or fails then.
          if (!ended.signal.aborted) await keep().catch(() => undefined)
        }
      })()
      return {
        [Symbol.asyncDispose]: async () => {
          ended.abort()
          await loop
        },
      }
    },
    async [Symbol.asyncDispose]() {
      await keeping
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}
