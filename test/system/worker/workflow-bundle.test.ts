import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { prepareWorkflowBundle } from '../../../worker/workflow-bundle.ts'

test(
  'the bundle is made once, in a folder of this user, where nothing stays that is old and not in use',
  { tags: ['long'] },
  async () => {
    const cache = await mkdtemp(join(tmpdir(), 'cache-'))
    onTestFinished(() => rm(cache, { recursive: true }))
    vi.stubEnv('XDG_CACHE_HOME', cache)
    onTestFinished(() => void vi.unstubAllEnvs())
    const folder = join(cache, 'connector')
    await mkdir(join(folder, 'compiled', 'v24'), { recursive: true, mode: 0o700 })
    const nameOf = (number: number) => `workflows-${String(number).padStart(16, '0')}.js`
    const write = async (name: string, hours: number) => {
      await writeFile(join(folder, name), '')
      const used = Date.now() / 1_000 - hours * 3_600
      await utimes(join(folder, name), used, used)
    }
    await write('workflows-notes.js', 9)
    await write('compiled/v24/old', 31 * 24)
    await write('compiled/v24/used', 29 * 24)
    for (const number of [1, 2, 3, 4, 5, 6]) await write(nameOf(number), 0.5)
    for (const number of [7, 8]) await write(nameOf(number), 2)
    const made = await Promise.all([prepareWorkflowBundle(), prepareWorkflowBundle()])
    const { ino } = await stat(made[0])
    expect(await readdir(join(folder, 'compiled', 'v24'))).toEqual(['used'])
    const others = [basename(made[0]), 'compiled', 'workflows-notes.js']
    const found = async () => (await readdir(dirname(made[0]))).toSorted()
    expect(await found()).toEqual([...others, ...[1, 2, 3, 4, 5, 6].map(nameOf)].toSorted())
    for (const number of [1, 2, 3, 4, 5, 6]) await write(nameOf(number), 2 + number)
    // A start marks its bundle as used, which keeps it.
    await utimes(made[0], 0, 0)
    expect([...made, await prepareWorkflowBundle()]).toEqual(Array(3).fill(made[0]))
    expect(await found()).toEqual([...others, ...[1, 2, 3, 4].map(nameOf)].toSorted())
    expect((await stat(made[0])).ino).toBe(ino)
  },
)

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
