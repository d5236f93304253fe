import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { prepareWorkflowBundle } from '../../../worker/workflow-bundle.ts'

test('the bundle is made once, in a folder of this user', { tags: ['long'] }, async () => {
  const cache = await mkdtemp(join(tmpdir(), 'cache-'))
  onTestFinished(() => rm(cache, { recursive: true }))
  vi.stubEnv('XDG_CACHE_HOME', cache)
  onTestFinished(() => void vi.unstubAllEnvs())
  const made = await Promise.all([prepareWorkflowBundle(), prepareWorkflowBundle()])
  const { mtimeMs } = await stat(made[0])
  expect([...made, await prepareWorkflowBundle()]).toEqual(Array(3).fill(made[0]))
  expect(await readdir(dirname(made[0]))).toEqual([basename(made[0])])
  expect((await stat(made[0])).mtimeMs).toBe(mtimeMs)
})

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
