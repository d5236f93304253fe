import { mkdirSync, realpathSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'

// Plain JavaScript, because every command runs this before the compile cache is enabled: with TypeScript, Node would
// first load its parser, which takes 60 ms.

/**
 * The cache folder: in `XDG_CACHE_HOME` if that is absolute, as the XDG standard requires, else in
 * `~/.cache`.
 *
 * @param {Readonly<Record<string, string | undefined>>} env
 * @returns {string}
 */
export function cacheFolder(env = process.env) {
  const given = env['XDG_CACHE_HOME'] ?? ''
  return join(isAbsolute(given) ? given : join(homedir(), '.cache'), 'billing-connector')
}

/**
 * Creates the cache folder for this user only. It contains code to run, so nothing in it may be used if `risk` is set.
 *
 * @param {Readonly<Record<string, string | undefined>>} env
 * @returns {{ folder: string, risk: Risk | undefined }} the folder that was checked, because a link may change
 * @throws {NodeJS.ErrnoException} this user cannot use it
 */
export function makeCacheFolder(env = process.env) {
  const named = cacheFolder(env)
  mkdirSync(named, { recursive: true, mode: 0o700 })
  const folder = realpathSync(named)
  // On Windows, owner and mode say nothing.
  const uid = process.getuid?.()
  return { folder, risk: uid === undefined ? undefined : findRisk({ folder, uid }) }
}

const writableByOthers = 0o022
const sticky = 0o1000

/**
 * The folder, or one above it, that lets others write to the folder or replace it.
 *
 * @typedef {{ path: string, isOwn: boolean }} Risk `isOwn`: this user owns it, but other users can write to it
 *
 * Write access to a parent suffices to replace a folder, unless the parent is sticky, like /tmp.
 *
 * @param {{ folder: string, uid: number }} options
 * @returns {Risk | undefined}
 */
function findRisk({ folder, uid }) {
  for (const path of withParents(folder)) {
    const { uid: owner, mode } = statSync(path)
    if (owner !== uid && owner !== 0) return { path, isOwn: false }
    const isProtected = path !== folder && (mode & sticky) !== 0
    if ((mode & writableByOthers) !== 0 && !isProtected) return { path, isOwn: true }
  }
  return undefined
}

/**
 * The folder and those above it, up to the user's home.
 *
 * @param {string} folder
 */
function* withParents(folder) {
  const home = homedir()
  for (let path = folder; ; path = dirname(path)) {
    yield path
    if (path === home || path === dirname(path)) return
  }
}
