import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createDiskSet } from '../../../core/storage/disk-set.ts'

test('a disk set keeps the keys of each group apart, and the first number of each key', () => {
  const set = createDiskSet()
  expect(set.add('rows', 'a', 2)).toBe(true)
  expect(set.add('rows', 'a', 7)).toBe(false)
  expect(set.get('rows', 'a')).toBe(2)
  expect(set.has('lines', 'a')).toBe(false)
  expect(set.get('lines', 'a')).toBeUndefined()
  set.close()
})

test('a disk set with a path lies there', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'disk-set-'))
  const path = join(folder, 'ids.db')
  const set = createDiskSet({ path })
  set.add('', 'a')
  expect(existsSync(path)).toBe(true)
  set.close()
  await rm(folder, { recursive: true })
})
