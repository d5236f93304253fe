import { readFile, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { createCsvDestination } from '../../../core/destinations/csv/csv.ts'
import { setSchema, writeSet } from '../../../core/destinations/write-set.ts'
import { createWorkplace } from './publication.ts'

test('a set names the manifests of one run, relative to itself, and is the same when written again', async () => {
  const workplace = await createWorkplace()
  try {
    const published = []
    for (const resource of ['customers', 'plans'] as const) {
      const publication = await workplace.toPublication(resource, [['{"id":"1"}']], {
        run: 'a/b',
        testMode: true,
      })
      const { manifest, manifestPath } = await createCsvDestination().publish(publication)
      published.push({ manifest, manifestPath: manifestPath! })
    }
    const set = { folder: workplace.exports, testMode: true, run: 'a/b', published }
    const path = await writeSet(set)
    expect(path).toBe(join(workplace.exports, 'test', 'sets', 'a%2Fb.json'))
    const text = await readFile(path, 'utf8')
    const { run, manifests } = setSchema.parse(JSON.parse(text))
    expect(run).toBe('a/b')
    expect(manifests.map(({ resource, verdict }) => [resource, verdict])).toEqual([
      ['customers', 'proven'],
      ['plans', 'proven'],
    ])
    for (const { path: manifest, resource } of manifests)
      expect(JSON.parse(await readFile(join(dirname(path), manifest), 'utf8'))).toMatchObject({
        run,
        resource,
      })
    await writeSet(set)
    expect(await readFile(path, 'utf8')).toBe(text)
    expect(await readdir(dirname(path))).toEqual(['a%2Fb.json'])
  } finally {
    await workplace.close()
  }
})
