import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { removeOldExport } from '../../../core/exports/prune.ts'
import { createFolderStore } from '../../../core/storage/folder-store.ts'

test('pruning a bucket leaves no manifest without its files when the run is published again meanwhile', async () => {
  const root = await mkdtemp(join(tmpdir(), 'prune-store-'))
  onTestFinished(() => rm(root, { recursive: true }))
  const store = createFolderStore(root)
  const folder = 'exports/customers/night'
  for (const name of ['customers-1.csv', 'manifest.json']) await store.create(`${folder}/${name}`, name)
  let listed = 0
  const files: typeof store = {
    ...store,
    folder: undefined,
    async list(path) {
      const found = await store.list(path)
      listed += 1
      // Another process had kept its files and creates the manifest now.
      if (listed === 1) await store.create(`${folder}/manifest.json`, 'again')
      return found
    },
  }
  const old = { run: 'night', resource: 'customers', startedAt: '', bytes: 0, folder: store.locate(folder) }
  await removeOldExport({ dataDir: root, files, old })
  expect(await store.list(folder)).toEqual([])
})
