import { readlink, realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative } from 'node:path'

/**
 * The path that `path` stands for once every link is resolved, as far as it exists; undefined if it lies outside
 * `root`, whose own links are resolved too. A file that is still to be written counts as lying where it would appear.
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

/** Undefined for what no file system takes for a path: NUL bytes, links that go round in a circle. */
async function realOf(path: string): Promise<string | undefined> {
  if (path.includes('\0')) return undefined
  try {
    return await realpath(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ELOOP') return undefined
  }
  const parent = dirname(path)
  if (parent === path) return undefined
  const realParent = await realOf(parent)
  if (realParent === undefined) return undefined
  // A link to what does not exist yet: whoever writes here creates it there.
  const target = await readlink(path).catch(() => undefined)
  if (target === undefined) return join(realParent, basename(path))
  // Not joined, which would take `way/..` away: where that leads is decided by what `way` links to.
  return await realOf(isAbsolute(target) ? target : `${realParent}/${target}`)
}
