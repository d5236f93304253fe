import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createFolderStore } from '../../../core/storage/folder-store.ts'
import { describeStoreDestination } from './store-destination.ts'

// The rules of publishing to a store, over the store that needs no server; over a bucket in test/acceptance/bucket.
describeStoreDestination('a file store', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'store-destination-'))
  return { store: createFolderStore(folder), close: () => rm(folder, { recursive: true, force: true }) }
})
