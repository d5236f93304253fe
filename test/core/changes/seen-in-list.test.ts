import { expect, test } from 'vitest'
import { newestCreated } from '../../../core/changes/audit/audit-retentions.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { markSeenInList } from '../../../core/changes/seen-in-list.ts'
import { retention, retentionRows, startEngine, startSandbox, workspace } from './engine.ts'

test('after a restore the list is read down to the run’s first send, although one older record is ahead of the clock', async () => {
  const sandbox = await startSandbox()
  const created = (Date.now() + 600_000) * 1_000
  sandbox.control.insert({ resource: 'retentions', fields: retention(900), created })
  const start = () => startEngine({ kind: changeKinds['create-retention'], sandbox })
  const engine = await start()
  const newestBefore = await newestCreated(engine)
  await engine.stage(retentionRows(250))
  await engine.send()
  const restored = await start()
  await restored.stage(retentionRows(250))
  const { ledger, billing, run } = restored
  const bound = { newestBefore, readLagMs: 1_000, concurrency: 1 }
  expect(await markSeenInList({ ledger, billing, run, workspace, mode: 'live', ...bound })).toBe(250)
})
