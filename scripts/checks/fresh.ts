import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { listNames } from '../../billing/resources/resource.ts'
import { readManifest } from '../../destinations/read-manifest.ts'
import { formatDuration } from '../terminal/format.ts'
import { fine, look, wrong, type Finding } from './finding.ts'

/** Whether each resource that is exported has a proven export that is no older than so many ms. */
export async function checkFresh(options: {
  dataDir: string
  testMode: boolean
  withinMs: number
}): Promise<Finding[]> {
  const { dataDir, testMode, withinMs } = options
  const root = join(dataDir, 'exports', testMode ? 'test' : '')
  const there = await readdir(root).catch((): string[] => [])
  const resources = listNames.filter((name) => there.includes(name))
  if (resources.length === 0) return [wrong('fresh', `Nothing was ever exported to ${root}.`)]
  const findings = resources.map((resource) =>
    look(resource, async () => {
      const manifest = await readManifest(join(root, resource, 'latest-proven'))
      if (manifest === undefined) return [wrong(resource, 'There is no proven export of it.')]
      const age = Date.now() - Date.parse(manifest.publishedAt)
      const says = `The last proven export is ${formatDuration(age)} old (${manifest.run}).`
      return [age <= withinMs ? fine(resource, says) : wrong(resource, says)]
    }),
  )
  return (await Promise.all(findings)).flat()
}
