import { expect, onTestFinished, test } from 'vitest'
import { readCandidates } from '../../../core/recoveries/candidates.ts'
import { parseRecoveryInput } from '../../../core/recoveries/input.ts'
import { saveRecoveryPlan, toRecoveryPlan } from '../../../core/recoveries/open.ts'
import { takeSnapshot } from '../../../core/recoveries/snapshot.ts'
import { createRunNotes } from '../../../core/runs/run-notes.ts'
import { openState } from '../../../core/state/open.ts'
import { cached } from '../../../core/storage/cached.ts'
import { createFolderStore } from '../../../core/storage/folder-store.ts'
import { clientOf, startSandbox, workspace } from '../changes/engine.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'

test('a worker that is lost with its folder after it staged subscriptions leaves the next one the same list with the same list values, whatever the service lists by then', async () => {
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
    execution: { workflowId: 'recovery-1', runId: 'first' },
    startedAt: new Date().toISOString(),
    identity: { workspace, baseUrl: sandbox.url, mode: 'live', store: state.storeId },
    settleMs: 20,
  })
  const notes = createRunNotes({ notes: state.notes, attempt: 1 })
  /** A step on a worker with an empty folder. */
  const takeNew = async () => {
    const dataDir = await temporaryFolder()
    return await takeSnapshot({
      deps: {
        ledger,
        dataDir,
        shared: cached(dataDir, store),
        notes,
        attempt: 1,
        holdLease: () => Promise.resolve(),
        concurrency: 2,
        readLagMs: 0,
      },
      plan,
      billing,
      signal: new AbortController().signal,
      onProgress: () => undefined,
    })
  }
  await saveRecoveryPlan({ dataDir: await temporaryFolder(), notes, plan, input: {} })

  const lost = await takeNew()
  const rows = await Array.fromAsync(ledger.rows({ run: plan.run }))
  expect([lost.staged, rows.length]).toEqual([8, 8])
  // It was lost before it could say that all are staged.
  await notes.write(plan.run, { snapshot: null })
  const first = await ledger.row({ run: plan.run, row: 1 })
  const isGone = sandbox.control.delete({ resource: 'subscriptions', id: first?.key ?? '' })
  expect(isGone).toBe(true)
  for (const plan of sandbox.control.ids({ resource: 'plans' }))
    sandbox.control.update({ resource: 'plans', id: plan, fields: { amount: 1 } })

  const next = await takeNew()
  expect([next.staged, next.candidates]).toEqual([8, 8])
  expect(await Array.fromAsync(ledger.rows({ run: plan.run }))).toEqual(rows)
})

test('a subscription is counted once, although the list had to be read again page by page', async () => {
  const sandbox = await startSandbox({
    counts: { subscriptions: 250, customers: 4, plans: 2 },
    needsAttention: 1,
  })
  const state = await openState({ folder: await temporaryFolder() })
  onTestFinished(() => state.close())
  const notes = createRunNotes(state)
  const { candidates, proven } = await readCandidates({
    run: 'recovery-1',
    notes,
    billing: clientOf(sandbox),
    testMode: false,
    readLagMs: 0,
    maxPages: 50,
    signal: new AbortController().signal,
    // Once some are read, the list loses its order.
    onProgress: () => sandbox.control.setFaults({ faults: [{ kind: 'ignoreOrdering' }] }),
  })
  expect([candidates.length, proven]).toEqual([250, false])
})
