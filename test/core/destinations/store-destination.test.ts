import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createFolderStore } from '../../../core/storage/folder-store.ts'
import { describeStoreDestination } from './store-destination.ts'

// The rules of publishing to a bucket, over a folder without what only a folder can do; over a bucket in test/acceptance/bucket.
describeStoreDestination('a store without renames', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'store-destination-'))
  return {
    store: { ...createFolderStore(folder), folder: undefined },
    close: () => rm(folder, { recursive: true, force: true }),
  }
})
