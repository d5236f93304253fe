import { mkdirSync, realpathSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { shell } from '../core/runs/view/shell.ts'

/** Other users can write code to the folder that this process would run; nothing was read from it. */
export class CacheFolderError extends Error {
  override readonly name = 'CacheFolderError'
  readonly exitCode = 2
  readonly hint: string
  constructor({ folder, reason, fix }: { folder: string; reason: string; fix: string }) {
    super(`The cache folder ${folder} contains code to run, but ${reason}.`)
    this.hint = `${fix}, or set XDG_CACHE_HOME to a folder that only you can write to.`
  }
}

type Environment = Readonly<Record<string, string | undefined>>

/**
 * The cache folder: in `XDG_CACHE_HOME` if that is absolute, as the XDG standard requires, else in
 * `~/.cache`.
 */
export function cacheFolder(env: Environment = process.env): string {
  const given = env['XDG_CACHE_HOME'] ?? ''
  return join(isAbsolute(given) ? given : join(homedir(), '.cache'), 'billing-connector')
}

/**
 * Creates the cache folder for this user only and checks that no other user can write to it.
 * @throws {CacheFolderError} another user can
 */
export function openCacheFolder(env: Environment = process.env): string {
  const named = cacheFolder(env)
  mkdirSync(named, { recursive: true, mode: 0o700 })
  // Return the folder that was checked: a link may change.
  const folder = realpathSync(named)
  // On Windows, owner and mode say nothing.
  if (process.getuid !== undefined) refuseForeign({ folder, uid: process.getuid() })
  return folder
}

const writableByOthers = 0o022
const sticky = 0o1000

/**
 * Rejects a folder that others can write to or replace. Write access to a parent suffices to replace it,
 * unless the parent is sticky, like /tmp.
 */
function refuseForeign({ folder, uid }: { folder: string; uid: number }): void {
  for (const path of withParents(folder)) {
    const { uid: owner, mode } = statSync(path)
    const isProtected = path !== folder && (mode & sticky) !== 0
    const reason =
      owner !== uid && owner !== 0
        ? `another user owns ${path}`
        : (mode & writableByOthers) !== 0 && !isProtected && `other users can write to ${path}`
    // Files in the folder itself may come from another user.
    const fix =
      path === folder
        ? `Remove it with \`${shell`rm -r ${path}`}\``
        : `Fix it with \`${shell`chmod go-w ${path}`}\``
    if (reason !== false) throw new CacheFolderError({ folder, reason, fix })
  }
}

/** The folder and those above it, up to the user's home. */
function* withParents(folder: string) {
  const home = homedir()
  for (let path = folder; ; path = dirname(path)) {
    yield path
    if (path === home || path === dirname(path)) return
  }
}
