import { shell } from '../core/runs/view/shell.ts'
import { isSystemError } from '../core/storage/system-errors.ts'
import { cacheFolder, makeCacheFolder } from './make-cache-folder.js'

/** Other users can write code to the folder that this process would run, or this user cannot use it. */
export class CacheFolderError extends Error {
  override readonly name = 'CacheFolderError'
  readonly exitCode = 2
  readonly hint: string
  constructor({ problem, fix, cause }: { problem: string; fix: string; cause?: unknown }) {
    super(problem, { cause })
    this.hint = `${fix}, or set XDG_CACHE_HOME to a folder that only you can write to.`
  }
}

/**
 * Creates the cache folder for this user only and checks that no other user can write to it.
 * @throws {CacheFolderError} another user can, or this one cannot
 */
export function openCacheFolder(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const { folder, risk } = make(env)
  if (risk === undefined) return folder
  const { path, isOwn } = risk
  const reason = isOwn ? `other users can write to ${path}` : `another user owns ${path}`
  // Files in the folder itself may come from another user.
  const fix =
    path === folder
      ? `Remove it with \`${shell`rm -r ${path}`}\``
      : `Fix it with \`${shell`chmod go-w ${path}`}\``
  const problem = `The cache folder ${folder} contains code to run, but ${reason}.`
  throw new CacheFolderError({ problem, fix })
}

function make(env: Readonly<Record<string, string | undefined>>) {
  try {
    return makeCacheFolder(env)
  } catch (cause) {
    if (!isSystemError(cause)) throw cause
    const problem = `The cache folder ${cacheFolder(env)} cannot be used (${cause.code}).`
    throw new CacheFolderError({ problem, fix: 'Set HOME to the home folder of this user', cause })
  }
}
