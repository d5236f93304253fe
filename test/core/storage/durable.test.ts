import { appendFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { replace } from '../../../core/storage/durable.ts'

let folder: string
let path: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'durable-'))
  path = join(folder, 'rows.txt')
  await writeFile(path, 'before')
})

afterEach(() => rm(folder, { recursive: true, force: true }))

test('a file that is replaced in pieces shows the old content until all of the new one is there', async () => {
  await replace(path, async (temporary) => {
    await appendFile(temporary, 'one ')
    await appendFile(temporary, 'two')
    expect(await readFile(path, 'utf8')).toBe('before')
  })
  expect(await readFile(path, 'utf8')).toBe('one two')
  expect(await readdir(folder)).toEqual(['rows.txt'])
})

test('a file that could not be written to its end stays as it was, and leaves nothing beside it', async () => {
  const failing = replace(path, async (temporary) => {
    await appendFile(temporary, 'one')
    throw new Error('the source failed')
  })
  await expect(failing).rejects.toThrow('the source failed')
  expect(await readFile(path, 'utf8')).toBe('before')
  expect(await readdir(folder)).toEqual(['rows.txt'])
})
