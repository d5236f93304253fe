import { stat, utimes } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { PartFile } from '../../destinations/destination.ts'
import { freeBytes } from '../../storage/system-errors.ts'
import type { SharedFolder } from '../../storage/cached.ts'

/** Another machine may have more room. */
class ScratchFullError extends Error {
  override readonly name = 'ScratchFullError'
  readonly retryable = true
  constructor({ dataDir, needed, free }: { dataDir: string; needed: number; free: number }) {
    const inMegabytes = (bytes: number) => `${Math.ceil(bytes / 1e6)} MB`
    super(
      `The disk of ${dataDir} has ${inMegabytes(free)} left, and this step needs ${inMegabytes(needed)}. It is retried, ` +
        'where possible on another machine.',
    )
  }
}

/** Enough to keep a connection busy although each chunk is small. */
const atOnce = 4

/**
 * Downloads the parts that are not on this machine yet: another worker may have read them.
 *
 * @throws {ScratchFullError} there is no room for them and for what is made of them
 */
export async function fetchParts(options: {
  dataDir: string
  shared: SharedFolder
  parts: readonly PartFile[]
  signal?: AbortSignal
}): Promise<void> {
  const { dataDir, shared, parts, signal } = options
  for (const folder of new Set(parts.map(({ path }) => dirname(path)))) await markUsed(folder)
  const total = parts.reduce((sum, { bytes }) => sum + bytes, 0)
  const there = (await Promise.all(parts.map(({ path }) => sizeOf(path)))).reduce(
    (sum, size) => sum + size,
    0,
  )
  if (there >= total) return
  const needed = 2 * total - there
  const free = await freeBytes(dataDir)
  if (free < needed) throw new ScratchFullError({ dataDir, needed, free })
  const left = parts.values()
  const fetchNext = async () => {
    for (const { path, bytes } of left) {
      signal?.throwIfAborted()
      await shared.fetch(path, { bytes, signal })
    }
  }
  await Promise.all(Array.from({ length: atOnce }, fetchNext))
}

const sizeOf = (path: string) =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  )

/** Copies are pruned by the age of their folders, which reading them does not change. */
async function markUsed(folder: string): Promise<void> {
  const now = new Date()
  await utimes(folder, now, now).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
}
