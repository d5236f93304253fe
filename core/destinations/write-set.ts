import { join, relative } from 'node:path'
import { z } from 'zod'
import { refuseLinkOut } from './allowed-root.ts'
import { replaceFile } from '../storage/durable.ts'
import { toFileName } from '../storage/file-name.ts'
import { exportsRoot } from './export-folder.ts'
import type { Manifest } from './manifest/manifest.ts'

/** `exports/sets/<run>.json`: the manifests that belong to one run. */
export const setSchema = z.object({
  run: z.string(),
  manifests: z.array(
    z.object({
      resource: z.string(),
      destination: z.string(),
      verdict: z.enum(['proven', 'unproven']),
      /** Relative to this file. */
      path: z.string(),
    }),
  ),
})
type ExportSet = z.infer<typeof setSchema>

/** Writes a run's set atomically; the same manifests always give the same bytes. */
export async function writeSet(options: {
  /** The root of published exports, as in `Publication`. */
  folder: string
  testMode: boolean
  run: string
  published: readonly {
    manifest: Pick<Manifest, 'resource' | 'destination' | 'verdict'>
    manifestPath: string
  }[]
}): Promise<string> {
  const sets = join(exportsRoot(options), 'sets')
  await refuseLinkOut({ root: options.folder, path: sets })
  const manifests = options.published.map(({ manifest, manifestPath }) => {
    const { resource, destination, verdict } = manifest
    return { resource, destination, verdict, path: relative(sets, manifestPath) }
  })
  const set: ExportSet = { run: options.run, manifests }
  const path = join(sets, `${toFileName(options.run)}.json`)
  await replaceFile(path, `${JSON.stringify(set, null, 2)}\n`)
  return path
}
