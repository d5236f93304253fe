import { mkdirSync, realpathSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { shell } from '../core/runs/view/shell.ts'

/** Other users can write where code that this process would run is kept; nothing was read from it. */
export class CacheFolderError extends Error {
  override readonly name = 'CacheFolderError'
  readonly exitCode = 2
  readonly hint: string
  constructor({ folder, reason, fix }: { folder: string; reason: string; fix: string }) {
    super(`The cache folder ${folder} holds code to run, and ${reason}.`)
    this.hint = `${fix}, or set XDG_CACHE_HOME to a folder that only you can write.`
  }
}

type Environment = Readonly<Record<string, string | undefined>>

/** Where what can be made again is kept: in `XDG_CACHE_HOME` if that is absolute, as its standard demands, else in `~/.cache`. */
export function cacheFolder(env: Environment = process.env): string {
  const given = env['XDG_CACHE_HOME'] ?? ''
  return join(isAbsolute(given) ? given : join(homedir(), '.cache'), 'billing-connector')
}

/**
 * Makes the cache folder, for this user alone, and checks that nobody else can put anything in it.
 * @throws {CacheFolderError} where another user could
 */
export function openCacheFolder(env: Environment = process.env): string {
  const named = cacheFolder(env)
  mkdirSync(named, { recursive: true, mode: 0o700 })
  // What is checked is what is used: a link may be moved.
  const folder = realpathSync(named)
  // On Windows owner and mode say nothing of that.
  if (process.getuid !== undefined) refuseForeign({ folder, uid: process.getuid() })
  return folder
}

const writableByOthers = 0o022
const sticky = 0o1000

/** Whoever can write a folder above it can put another one in its place, unless that folder is sticky, like /tmp. */
function refuseForeign({ folder, uid }: { folder: string; uid: number }): void {
  for (const path of withParents(folder)) {
    const { uid: owner, mode } = statSync(path)
    const isProtected = path !== folder && (mode & sticky) !== 0
    const reason =
      owner !== uid && owner !== 0
        ? `another user owns ${path}`
        : (mode & writableByOthers) !== 0 && !isProtected && `other users can write ${path}`
    // What lies in the folder itself may have been put there by somebody else.
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
