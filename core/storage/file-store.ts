import type { Readable } from 'node:stream'

/** A small text, with the tag of this version of it. */
export interface TaggedText {
  text: string
  tag: string
}

export interface StoredFile {
  path: string
  bytes: number
}

/**
 * Where published files, manifests, pointers and reports are kept: a folder, or a bucket of an object store. What the
 * steps of a run leave to each other is kept there through `SharedFolder`, if several workers share it.
 * Paths are relative, with `/` between their parts. A promise resolves when everyone sees the result.
 *
 * @throws {StoreAwayError} it does not answer; the same call may succeed later
 * @throws {StoreRefusedError} it does not permit the call
 */
export interface FileStore {
  /** The place for people and manifests: an absolute path, or an address like `s3://bucket/prefix/path`. */
  locate(path: string): string
  /** The path that `locate` turned into this place; undefined for a place outside. */
  pathOf(location: string): string | undefined
  /**
   * Keeps a local file of any size; the last one put under a path wins.
   * @throws the signal's reason if it is aborted in the meantime
   */
  put(path: string, file: string, options?: { signal?: AbortSignal | undefined }): Promise<void>
  /** Keeps a small text unless the path has another one; false then. */
  create(path: string, text: string): Promise<boolean>
  /** A small text and its tag, which belong together: in some stores, that takes several calls. */
  read(path: string): Promise<TaggedText | undefined>
  /** A small text without its tag, by one call. */
  readText(path: string): Promise<string | undefined>
  /**
   * Replaces a small text if it is still the version of `tag`, or creates it without one; false if it is
   * another by now.
   */
  replace(path: string, text: string, tag: string | undefined): Promise<boolean>
  /** The bytes of a file; undefined if there is none. */
  open(path: string): Promise<Readable | undefined>
  /** Every file below a path. Never the truth of what an export consists of: its manifest is. */
  list(path: string): Promise<StoredFile[]>
  remove(path: string): Promise<void>
  /** What only a folder can do: a bucket has neither renames nor links. */
  readonly folder?: FolderOnly | undefined
}

export interface FolderOnly {
  /**
   * Moves a local folder of the same disk to a path, at once.
   * @throws the error of the disk, if something else is there
   */
  moveIn(path: string, folder: string): Promise<void>
  /** The target of a symbolic link; undefined if there is no link. */
  readLink(path: string): Promise<string | undefined>
  /** The paths that the links in a folder lead to, no matter who made them. */
  linkedFrom(path: string): Promise<string[]>
  /** Changes a link if it still has the target `before`, or creates it without one; false if it is another by now. */
  replaceLink(path: string, target: string, before: string | undefined): Promise<boolean>
}

/**
 * Removes what nobody needs any more, unless the credentials do not permit it; false then. Some stores are set up so that
 * no worker can remove anything.
 *
 * @throws {StoreAwayError}
 */
export async function removeIfPermitted(store: FileStore, path: string): Promise<boolean> {
  try {
    await store.remove(path)
    return true
  } catch (error) {
    if (!(error instanceof StoreRefusedError)) throw error
    return false
  }
}

/** The object store does not answer, or asks to come back later. */
export class StoreAwayError extends Error {
  override readonly name = 'StoreAwayError'
  readonly retryable = true
}

/** The object store does not permit a call: the bucket, the rights, the credentials or the region are wrong. */
export class StoreRefusedError extends Error {
  override readonly name = 'StoreRefusedError'
  readonly retryable = false
}

/** The object store ignores a condition of a write, so a pointer could go back, or a manifest be replaced. */
export class ConditionIgnoredError extends Error {
  override readonly name = 'ConditionIgnoredError'
  readonly retryable = false
  constructor({ where, condition }: { where: string; condition: 'If-None-Match' | 'If-Match' }) {
    super(
      `The object store of ${where} ignores ${condition}: two runs could replace each other's files, and a pointer` +
        ' could go back to an older export. Use one with conditional writes, and correct CONNECTOR_FILES_URL.',
    )
  }
}
