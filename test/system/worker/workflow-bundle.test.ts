import { copyFile, mkdir, mkdtemp, readFile, rm, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { prepareWorkflowBundle } from '../../../worker/workflow-bundle.ts'

test('a kept workflow bundle that is not what was made is made again', { tags: ['long'] }, async () => {
  const cache = await mkdtemp(join(tmpdir(), 'cache-'))
  onTestFinished(() => rm(cache, { recursive: true }))
  // The cache of this user may have a bundle that another clone made, with other paths.
  vi.stubEnv('XDG_CACHE_HOME', join(cache, 'first'))
  const made = await prepareWorkflowBundle()
  const folder = join(cache, 'billing-connector')
  const kept = join(folder, basename(made))
  await mkdir(folder, { mode: 0o700 })
  await copyFile(made, kept)
  await truncate(kept, 100_000)
  vi.stubEnv('XDG_CACHE_HOME', cache)
  onTestFinished(() => void vi.unstubAllEnvs())
  const again = await prepareWorkflowBundle()
  expect(dirname(again)).toBe(folder)
  expect(await codeIn(again)).toBe(await codeIn(made))
  // The one that was made is taken as it is.
  expect(await prepareWorkflowBundle()).toBe(again)
})

/** Without the source map, in which each bundle has a random name of its own. */
async function codeIn(path: string): Promise<string | undefined> {
  return (await readFile(path, 'utf8')).split('//# sourceMappingURL')[0]
}

test('the bundle takes one byte a character, and its map names its sources without a copy of them', async () => {
  const bundle = await readFile(await prepareWorkflowBundle(), 'utf8')
  expect(/[^\0-\xff]/.exec(bundle)?.[0]).toBeUndefined()
  const [, map = ''] = bundle.split('base64,')
  const { sources, sourcesContent } = z
    .object({ sources: z.string().array(), sourcesContent: z.unknown().optional() })
    .parse(JSON.parse(Buffer.from(map, 'base64').toString()))
  expect(sources.join()).toContain('workflows/export-run.ts')
  expect(sourcesContent).toBeUndefined()
})
