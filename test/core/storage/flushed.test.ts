import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join, resolve, sep } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createChangesFile } from '../../../core/changes/staged-changes.ts'
import { createCsvDestination } from '../../../core/destinations/files/csv.ts'
import { createParquetDestination } from '../../../core/destinations/files/parquet.ts'
import { openChunks } from '../../../core/exports/parts/chunks.ts'
import { createFolderMark } from '../../../core/state/claims-mark.ts'
import { replaceFile, writeNew } from '../../../core/storage/durable.ts'
import { createFolderStore } from '../../../core/storage/folder-store.ts'
import { createWorkplace } from '../destinations/publication.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'

/**
 * Follows what this process writes: `early` are the files that were renamed, alone or with their folder, before they were
 * flushed; `unflushed` are files and folders that a power cut could still take back.
 */
function watchFlushes() {
  const { open, rename, copyFile } = fs
  const unflushed = new Set<string>()
  const early: string[] = []
  fs.open = async (path, flags, mode) => {
    const file = await open(path, flags, mode)
    const name = resolve(String(path))
    if (flags !== undefined && flags !== 'r') unflushed.add(name)
    for (const method of ['sync', 'datasync'] as const) {
      const flush = file[method].bind(file)
      file[method] = async () => {
        await flush()
        unflushed.delete(name)
      }
    }
    for (const method of ['write', 'writeFile', 'appendFile'] as const) {
      const write = file[method].bind(file) as (...of: unknown[]) => never
      file[method] = (...of: unknown[]) => {
        unflushed.add(name)
        return write(...of)
      }
    }
    return file
  }
  fs.copyFile = async (from, to) => {
    await copyFile(from, to)
    unflushed.add(resolve(String(to)))
  }
  fs.rename = async (from, to) => {
    const moved = resolve(String(from))
    for (const name of unflushed)
      if (name === moved || name.startsWith(moved + sep)) {
        early.push(name)
        unflushed.delete(name)
      }
    await rename(from, to)
    unflushed.add(dirname(resolve(String(to))))
  }
  syncBuiltinESMExports()
  onTestFinished(() => {
    Object.assign(fs, { open, rename, copyFile })
    syncBuiltinESMExports()
  })
  return { early, unflushed }
}

async function publish(destination: ReturnType<typeof createCsvDestination>) {
  const workplace = await createWorkplace()
  onTestFinished(() => workplace.close())
  await destination.publish(
    await workplace.toPublication('plans', [['{"id":"a"}'], ['{"id":"b"}', '"rejected"']]),
  )
}

test.each<[string, (folder: string) => Promise<unknown>]>([
  ['a file that is replaced', (folder) => replaceFile(join(folder, 'plan.json'), '{}')],
  [
    'a file that is copied into a store',
    (folder) => createFolderStore(folder).put('plans.csv', import.meta.filename),
  ],
  ['a file that is new', (folder) => writeNew(join(folder, 'mark.json'), '{}')],
  [
    'the file of changes that a run will send',
    async (folder) => {
      const of = { run: 'run-1', workspace: 'acc_1', mode: 'live', kind: 'create-addon' } as const
      await using file = await createChangesFile(folder, of)
      file.add({ row: 2, key: 'a', body: '{}' })
      await file.keep(
        new Map([[2, { closed: { state: 'dropped', outcome: 'existed', error: 'it exists' } }]]),
      )
    },
  ],
  [
    'a part with rows of a read',
    async (folder) => {
      const chunks = openChunks({ folder, name: 'a' })
      await chunks.append({ table: 'plans', text: 'a\n', count: 1 })
      await chunks.close()
    },
  ],
  [
    'the number of claims, before the request of the last one leaves',
    async (folder) => {
      await using mark = createFolderMark(folder)
      await mark.raise(1)
      await mark.raise(2)
    },
  ],
  ['an export to csv', () => publish(createCsvDestination())],
  ['an export to parquet', () => publish(createParquetDestination())],
])('%s is on the disk before others see it', async (_what, write) => {
  const folder = await temporaryFolder()
  const { early, unflushed } = watchFlushes()
  await write(folder)
  expect({ early, unflushed: [...unflushed] }).toEqual({ early: [], unflushed: [] })
})

test('the first claim puts its new file into its folder before its request leaves', async () => {
  const folder = await temporaryFolder()
  const { unflushed } = watchFlushes()
  unflushed.add(folder)
  await using mark = createFolderMark(folder)
  await mark.raise(1)
  expect([...unflushed]).toEqual([])
})
