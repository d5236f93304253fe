import { readlink, realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative } from 'node:path'
import { isSystemError } from './system-errors.ts'

/**
 * Resolves every link in `path`, as far as it exists; undefined if the result lies outside `root`, whose
 * links are resolved too. A file that does not exist yet counts as lying where it would be created.
 */
export async function resolveInside({
  root,
  path,
}: {
  root: string
  path: string
}): Promise<string | undefined> {
  const [realRoot, real] = await Promise.all([realOf(root), realOf(path)])
  if (realRoot === undefined || real === undefined) return undefined
  const way = relative(realRoot, real)
  const isOutside = /^\.\.($|[/\\])/.test(way) || isAbsolute(way)
  return isOutside ? undefined : real
}

/** Undefined for what no file system accepts as a path: NUL bytes, circular links. */
async function realOf(path: string): Promise<string | undefined> {
  if (path.includes('\0')) return undefined
  try {
    return await realpath(path)
  } catch (error) {
    if (isSystemError(error, 'ELOOP')) return undefined
  }
  const parent = dirname(path)
  if (parent === path) return undefined
  const realParent = await realOf(parent)
  if (realParent === undefined) return undefined
  // A link to a missing file: writing here would create it there.
  const target = await readlink(path).catch(() => undefined)
  if (target === undefined) return join(realParent, basename(path))
  // Not joined, which would drop `way/..`: its target depends on what `way` links to.
  return await realOf(isAbsolute(target) ? target : `${realParent}/${target}`)
}
