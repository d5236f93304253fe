import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createSpool } from '../../../core/storage/spool.ts'

async function temporaryFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'spool-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}

const row = (number: number) => ({ number, text: `ñ "${number}"\n` })

test('a spool gives back all values in their order, each time it is read, and has no name in its folder', async () => {
  const folder = await temporaryFolder()
  await using spool = await createSpool<ReturnType<typeof row>>(folder)
  const added = Array.from({ length: 2_500 }, (_, index) => row(index))
  for (const value of added) spool.add(value)
  expect(await readdir(folder)).toEqual([])
  const batches = await Array.fromAsync(spool.batches())
  expect(batches.map(({ length }) => length)).toEqual([1_000, 1_000, 500])
  expect(batches.flat()).toEqual(added)
  expect((await Array.fromAsync(spool.batches())).flat()).toEqual(added)
})

test('long values are read a few at a time, so that no batch outgrows what a text may hold', async () => {
  await using spool = await createSpool<string>(await temporaryFolder())
  const added = Array.from({ length: 9 }, (_, index) => `${index}`.repeat(1_500_000))
  for (const value of added) spool.add(value)
  const batches = await Array.fromAsync(spool.batches())
  expect(batches.map(({ length }) => length)).toEqual([3, 3, 3])
  expect(batches.flat()).toEqual(added)
})

test('an empty spool has no batch', async () => {
  await using spool = await createSpool(await temporaryFolder())
  expect(await Array.fromAsync(spool.batches())).toEqual([])
})
