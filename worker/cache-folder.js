import { mkdirSync, realpathSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'

// Plain JavaScript, because every command runs this before the compile cache is enabled: with TypeScript, Node would
// first load its parser, which takes 60 ms.

/** The cache folder cannot be used, or other users can write code to it that this process would run. */
export class CacheFolderError extends Error {
  /** @override */
  name = 'CacheFolderError'
  exitCode = 2
  hint = 'Correct this, or set XDG_CACHE_HOME to a folder that only you can write to.'
}

/**
 * The cache folder: in `XDG_CACHE_HOME` if that is absolute, as the XDG standard requires, else in
 * `~/.cache`.
 *
 * @param {Readonly<Record<string, string | undefined>>} env
 * @returns {string}
 */
export function cacheFolder(env = process.env) {
  const given = env['XDG_CACHE_HOME'] ?? ''
  return join(isAbsolute(given) ? given : join(homedir(), '.cache'), 'connector')
}

/**
 * Creates the cache folder for this user only and checks that no other user can write to it.
 *
 * @param {Readonly<Record<string, string | undefined>>} env
 * @returns {string} the folder that was checked, because a link may change
 * @throws {CacheFolderError} another user can, or this one cannot
 */
export function openCacheFolder(env = process.env) {
  const named = cacheFolder(env)
  const folder = create(named)
  const risk = findRisk(folder)
  if (risk !== undefined)
    throw new CacheFolderError(`The cache folder ${folder} contains code to run, but ${risk}.`)
  return folder
}

/** @param {string} named */
function create(named) {
  try {
    mkdirSync(named, { recursive: true, mode: 0o700 })
    return realpathSync(named)
  } catch (cause) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (cause)
    throw new CacheFolderError(`The cache folder ${named} cannot be used (${code}).`, { cause })
  }
}

const writableByOthers = 0o022
const sticky = 0o1000

/**
 * Says who else can write to the folder, or replace it. Write access to a parent suffices to replace a folder, unless
 * the parent is sticky, like /tmp.
 *
 * @param {string} folder
 */
function findRisk(folder) {
  const uid = process.getuid?.()
  // On Windows, owner and mode say nothing.
  if (uid === undefined) return undefined
  const home = homedir()
  for (let path = folder; ; path = dirname(path)) {
    const { uid: owner, mode } = statSync(path)
    if (owner !== uid && owner !== 0) return `another user owns ${path}`
    const isProtected = path !== folder && (mode & sticky) !== 0
    if ((mode & writableByOthers) !== 0 && !isProtected) return `other users can write to ${path}`
    if (path === home || path === dirname(path)) return undefined
  }
}
