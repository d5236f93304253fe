import { join } from 'node:path'
import { listNames } from '../billing/resources/resource.ts'
import { exportsRoot } from '../destinations/export-folder.ts'
import { readManifest } from '../destinations/read-manifest.ts'
import type { Identity } from '../state/identity.ts'
import type { State } from '../state/open-state.ts'

export interface LastProven {
  resource: string
  destination: string
  /** ms since 1970 */
  at: number
}

/**
 * When each resource was last proven in each destination, as far as the data folder tells: by the watermarks, which
 * every proven run moves whose time is the service's own, and by the manifests that `latest-proven` leads to.
 */
export async function findLastProven(options: {
  dataDir: string
  identity: Identity
  watermarks: State['watermarks']
}): Promise<LastProven[]> {
  const { dataDir, identity, watermarks } = options
  const moves = await watermarks.moves(identity)
  const moved = moves
    .filter(({ filter }) => !isFiltered(filter))
    .map(({ resource, destination, movedAt }) => ({
      resource,
      // `postgres some_schema from https://...`
      destination: destination.split(' ')[0] ?? '',
      at: movedAt,
    }))
  const root = exportsRoot({ folder: join(dataDir, 'exports'), testMode: identity.mode === 'test' })
  const published = listNames.flatMap((resource) =>
    [root, join(root, 'parquet')].map((folder) => atPointer(join(folder, resource, 'latest-proven'))),
  )
  const latest = new Map<string, LastProven>()
  for (const one of [...moved, ...(await Promise.all(published)).flat()]) {
    const key = `${one.resource} ${one.destination}`
    if (one.at > (latest.get(key)?.at ?? 0)) latest.set(key, one)
  }
  return [...latest.values()]
}

/** A watermark's `filter` may also only say which columns were left out. */
const isFiltered = (filter: string) => filter !== '' && 'filters' in (JSON.parse(filter) as object)

async function atPointer(folder: string): Promise<LastProven[]> {
  // A folder that can't be read is `check`'s to tell; it keeps no worker from its work.
  const manifest = await readManifest(folder).catch(() => undefined)
  if (manifest === undefined) return []
  const { resource, destination, publishedAt } = manifest
  return [{ resource, destination, at: Date.parse(publishedAt) }]
}
