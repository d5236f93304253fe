import { expect, onTestFinished, test } from 'vitest'
import { parseRecoveryInput } from '../../../core/recoveries/input.ts'
import { saveRecoveryPlan, toRecoveryPlan } from '../../../core/recoveries/open.ts'
import { takeSnapshot } from '../../../core/recoveries/snapshot.ts'
import { createStepFolder } from '../../../core/runs/step-folder.ts'
import { openState } from '../../../core/state/open.ts'
import { createFolderStore } from '../../../core/storage/folder-store.ts'
import { clientOf, startSandbox, workspace } from '../changes/engine.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'

test('a worker that is lost with its folder after it staged subscriptions leaves the next one the same list, whatever the service lists by then', async () => {
  const sandbox = await startSandbox({
    counts: { subscriptions: 8, customers: 4, plans: 2 },
    needsAttention: 1,
  })
  const billing = clientOf(sandbox)
  const state = await openState({ folder: await temporaryFolder() })
  onTestFinished(() => state.close())
  const { ledger } = state
  const store = createFolderStore(await temporaryFolder())
  const input = parseRecoveryInput({})
  const plan = toRecoveryPlan({
    input,
    run: 'recovery-1',
    folder: 'recoveries/recovery-1',
    execution: { workflowId: 'recovery-1', runId: 'first' },
    startedAt: new Date().toISOString(),
    identity: { workspace, baseUrl: sandbox.url, mode: 'live', store: state.storeId },
    settleMs: 20,
  })
  const startStep = async () => {
    const folder = createStepFolder({ dataDir: await temporaryFolder(), store })
    await folder.fetchRun({ room: 'recoveries', run: plan.run })
    return folder
  }
  const snapshotIn = (folder: Awaited<ReturnType<typeof startStep>>) =>
    takeSnapshot({
      deps: {
        ledger,
        dataDir: folder.dataDir,
        keep: () => folder.keep(),
        attempt: 0,
        holdLease: () => Promise.resolve(),
        concurrency: 2,
        readLagMs: 0,
      },
      plan,
      billing,
      signal: new AbortController().signal,
      onProgress: () => undefined,
    })
  const opening = await startStep()
  await saveRecoveryPlan({ dataDir: opening.dataDir, plan, input: {} })
  await opening.keep()

  const lost = await snapshotIn(await startStep())
  const rows = await Array.fromAsync(ledger.rows({ run: plan.run }))
  expect([lost.staged, rows.length]).toEqual([8, 8])
  const first = await ledger.row({ run: plan.run, row: 1 })
  const isGone = sandbox.control.delete({ resource: 'subscriptions', id: first?.key ?? '' })
  expect(isGone).toBe(true)

  const next = await snapshotIn(await startStep())
  expect([next.staged, next.candidates]).toEqual([8, 8])
  expect(await Array.fromAsync(ledger.rows({ run: plan.run }))).toEqual(rows)
})
