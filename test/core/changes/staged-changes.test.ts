import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { createChangesFile, stageKeptChanges, toNewChange } from '../../../core/changes/staged-changes.ts'
import { retentionRows, startEngine, startSandbox, workspace } from './engine.ts'

const kind = changeKinds['create-retention']
const onHeld = () => Promise.reject(new Error('no key is held'))
const of = { run: 'run-1', workspace, mode: 'live', kind: 'create-retention' } as const

test('all changes that a run keeps are staged, however many and however long they are', async () => {
  const engine = await startEngine({ kind, sandbox: await startSandbox() })
  const { ledger, runFolder: folder } = engine
  const changes = retentionRows(5_100).map((change) => toNewChange({ kind, change }))
  // 6 MB of bodies at the end, and 5,000 short ones before.
  const long = changes.slice(5_000).map((change) => ({ ...change, body: change.body.padEnd(60_000) }))
  const kept = [changes.slice(0, 5_000), long]
  await using file = await createChangesFile(folder, of)
  for (const change of kept.flat()) file.add(change)
  expect(await file.keep()).toBe(5_100)
  const written: number[] = []
  const stage: typeof ledger.stage = (options) => {
    written.push(options.changes.length)
    return ledger.stage(options)
  }
  await stageKeptChanges({ ledger: { ...ledger, stage }, folder, onHeld })
  const rows = await engine.rows()
  expect(rows.map(({ body }) => body)).toEqual(kept.flat().map(({ body }) => body))
  // One write for the short ones; then 4 MB end the next.
  expect(written).toEqual([5_000, 67, 33])
})

test('a decision on a change after it was written is staged with it, even after the ledger lost it', async () => {
  const engine = await startEngine({ kind, sandbox: await startSandbox() })
  const { ledger, runFolder: folder } = engine
  await using file = await createChangesFile(folder, of)
  for (const change of retentionRows(3)) file.add(toNewChange({ kind, change }))
  const closed = { state: 'dropped', outcome: 'existed', error: 'it already exists' } as const
  expect(await file.keep(new Map([[2, { closed, before: '{"ids":["ret_1"]}' }]]))).toBe(3)
  for (let time = 1; time <= 2; time += 1) {
    await stageKeptChanges({ ledger, folder, onHeld })
    expect(await engine.rows()).toMatchObject([
      { state: 'staged', outcome: null, before: null },
      { state: 'dropped', outcome: 'existed', before: '{"ids":["ret_1"]}' },
      { state: 'staged', outcome: null, before: null },
    ])
  }
})

test('changes that are not kept leave no file, and are read as they were added, any number of times', async () => {
  const { runFolder: folder } = await startEngine({ kind, sandbox: await startSandbox() })
  const before = await readdir(folder)
  const changes = retentionRows(5_100).map((change) => toNewChange({ kind, change }))
  {
    await using file = await createChangesFile(join(folder, 'staged'), of)
    for (const change of changes) file.add(change)
    for (let time = 1; time <= 2; time += 1) {
      const batches = await Array.fromAsync(file.batches())
      expect(batches.map(({ length }) => length)).toEqual([5_000, 100])
      expect(batches.flat().map(({ body }) => body)).toEqual(changes.map(({ body }) => body))
    }
  }
  expect(await readdir(folder)).toEqual(before)
})
