import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createFolderStore } from '../../../core/storage/folder-store.ts'
import { expect, test } from 'vitest'
import { describeFileStore } from './file-store.ts'

describeFileStore('a folder', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'folder-store-'))
  const store = createFolderStore(folder)
  // A folder has one process that writes it, and that has one store.
  return { store, other: store, close: () => rm(folder, { recursive: true }) }
})

test('of two that change a link at once, the one that compared an older target is refused', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'folder-store-'))
  const links = createFolderStore(folder).folder!
  const change = (target: string, before?: string) => links.replaceLink('a/latest', target, before)
  const done = await Promise.all([change('one'), change('two')])
  expect(done.filter(Boolean)).toHaveLength(1)
  const first = await links.readLink('a/latest')
  expect(await change('three', first)).toBe(true)
  expect(await change('four', first)).toBe(false)
  expect(await links.readLink('a/latest')).toBe('three')
  await rm(folder, { recursive: true })
})
