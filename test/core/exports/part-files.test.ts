import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openPartFiles } from '../../../core/exports/parts/part-files.ts'

test('after a write that failed nothing more counts, so that no note speaks of rows that are not there', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'part-files-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  // Every write to it fails as on a full disk.
  await symlink('/dev/full', join(folder, 'customers.a.part'))
  const files = openPartFiles({ folder, name: 'a', kept: [] })
  onTestFinished(() => files.close())
  const row = `${'x'.repeat(1 << 20)}\n`
  await expect(files.append({ table: 'customers', text: row, count: 1 })).rejects.toThrow(/ENOSPC/)
  await expect(files.flush()).rejects.toThrow(/ENOSPC/)
  await expect(files.append({ table: 'plans', text: 'a\n', count: 1 })).rejects.toThrow(/ENOSPC/)
})
