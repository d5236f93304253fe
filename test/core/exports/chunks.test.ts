import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openChunks } from '../../../core/exports/parts/chunks.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'

test('after a write that failed nothing more counts, so that no note speaks of rows that are not there', async () => {
  const folder = await temporaryFolder()
  // Every write to it fails as on a full disk.
  await symlink('/dev/full', join(folder, 'customers.a.00001.part'))
  const chunks = openChunks({ folder, name: 'a' })
  onTestFinished(() => chunks.abandon())
  const row = `${'x'.repeat(1 << 20)}\n`
  await expect(chunks.append({ table: 'customers', text: row, count: 1 })).rejects.toThrow(/ENOSPC/)
  await expect(chunks.close()).rejects.toThrow(/ENOSPC/)
  await expect(chunks.append({ table: 'plans', text: 'a\n', count: 1 })).rejects.toThrow(/ENOSPC/)
})
