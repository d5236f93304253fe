import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createFolderStore } from '../../../core/storage/folder-store.ts'
import { describeFileStore } from './file-store.ts'

describeFileStore('a folder', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'folder-store-'))
  const store = createFolderStore(folder)
  // A folder has one process that writes it, and that has one store.
  return { store, other: store, close: () => rm(folder, { recursive: true }) }
})
