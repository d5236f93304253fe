import { expect, test } from 'vitest'
import type { Billing } from '../../../core/billing/client.ts'
import { newestCreated, newestPage } from '../../../core/changes/audit/audit-retentions.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { markSeenInList } from '../../../core/changes/seen-in-list.ts'
import { copies, retention, retentionRows, startEngine, startSandbox, workspace } from './engine.ts'

test('after a restore the list is read down to the run’s first send, although one older record is ahead of the clock', async () => {
  const sandbox = await startSandbox()
  const created = (Date.now() + 600_000) * 1_000
  sandbox.control.insert({ resource: 'retentions', fields: retention(900), created })
  const start = () => startEngine({ kind: changeKinds['create-retention'], sandbox })
  const engine = await start()
  const newestBefore = newestCreated(await newestPage(engine))
  await engine.stage(retentionRows(250))
  await engine.send()
  const restored = await start()
  await restored.stage(retentionRows(250))
  const { ledger, billing, run } = restored
  const bound = { newestBefore, readLagMs: 1_000 }
  expect(await markSeenInList({ ledger, billing, run, workspace, mode: 'live', ...bound })).toBe(250)
})

test('a list that is empty after a restore, and was not before, shows nothing: all rows are looked up before they are sent', async () => {
  const sandbox = await startSandbox({ counts: { retentions: 3 } })
  const engine = await startEngine({ kind: changeKinds['create-retention'], sandbox })
  const newestBefore = newestCreated(await newestPage(engine))
  await engine.stage(retentionRows(4))
  const { ledger, billing: service, run } = engine
  const list: Billing['list'] = async (query) => ({
    ...(await service.list(query)),
    records: [],
    count: 0,
    next: null,
  })
  const bound = { newestBefore, readLagMs: 1_000 }
  const mark = (billing: Billing) =>
    markSeenInList({ ledger, billing, run, workspace, mode: 'live', ...bound })
  expect(await mark(service)).toBe(0)
  expect(await mark({ ...service, list })).toBe(4)
})

test('a list that cannot be read completely shows nothing about staged rows: all are looked up before they are sent', async () => {
  const sandbox = await startSandbox()
  const start = () => startEngine({ kind: changeKinds['create-retention'], sandbox })
  const engine = await start()
  await engine.stage(retentionRows(20))
  await engine.send({ rows: [2, 3] })
  const restored = await start()
  await restored.stage(retentionRows(20))
  const { ledger, billing, run } = restored
  sandbox.control.setFaults({
    faults: [{ kind: 'shortWindow', drop: 1, on: 'GET /retentions/', requests: [1, 2, 3, 4] }],
  })
  const bound = { newestBefore: undefined, readLagMs: 1_000 }
  expect(await markSeenInList({ ledger, billing, run, workspace, mode: 'live', ...bound })).toBe(20)
  await restored.finish()
  expect([...copies(sandbox, 'retentions', 'number').values()]).toEqual(Array.from({ length: 20 }, () => 1))
})
