import { expect, test } from 'vitest'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { withKey } from '../../../core/changes/stage-changes.ts'
import { keepStagedChanges, stageKeptChanges } from '../../../core/changes/staged-changes.ts'
import { retentionRows, startEngine, startSandbox, workspace } from './engine.ts'

test('all changes that a run keeps are staged, however many and however long they are', async () => {
  const kind = changeKinds['create-retention']
  const engine = await startEngine({ kind, sandbox: await startSandbox() })
  const { ledger, runFolder: folder } = engine
  const changes = retentionRows(5_100).map((change) => withKey({ kind, change }))
  // 6 MB of bodies at the end, and 5,000 short ones before.
  const long = changes.slice(5_000).map((change) => ({ ...change, body: change.body.padEnd(60_000) }))
  const kept = [changes.slice(0, 5_000), long]
  expect(
    await keepStagedChanges({
      folder,
      changes: (async function* () {
        yield* kept
      })(),
    }),
  ).toBe(5_100)
  const written: number[] = []
  const stage: typeof ledger.stage = (options) => {
    written.push(options.changes.length)
    return ledger.stage(options)
  }
  await stageKeptChanges({
    ledger: { ...ledger, stage },
    run: 'run-1',
    space: { workspace, mode: 'live' },
    kind,
    folder,
    onHeld: () => Promise.reject(new Error('no key is held')),
  })
  const rows = await engine.rows()
  expect(rows.map(({ body }) => body)).toEqual(kept.flat().map(({ body }) => body))
  // One write for the short ones; then 4 MB end the next.
  expect(written).toEqual([5_000, 67, 33])
})
