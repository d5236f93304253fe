import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { resumeSubscription } from '../../../core/changes/kinds/resume-subscription.ts'
import { parseRecoveryInput } from '../../../core/recoveries/input.ts'
import { saveRecoveryPlan, toRecoveryPlan } from '../../../core/recoveries/open.ts'
import { writeRecoveryReport } from '../../../core/recoveries/report.ts'
import { takeSnapshot } from '../../../core/recoveries/snapshot.ts'
import { createRunNotes } from '../../../core/runs/run-notes.ts'
import { openState } from '../../../core/state/open.ts'
import { cached } from '../../../core/storage/cached.ts'
import { clientOf, stageChanges, startSandbox, workspace } from '../changes/engine.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'

test('the table of a dry run says what its preview counts, although another recovery has resumed some of them since', async () => {
  const sandbox = await startSandbox({
    counts: { subscriptions: 8, customers: 4, plans: 2 },
    needsAttention: 1,
  })
  for (const id of sandbox.control.ids({ resource: 'subscriptions' }))
    sandbox.control.update({
      resource: 'subscriptions',
      id,
      fields: { status: 'needs_attention', needs_attention_reason: 'gateway_issue', cancelled: null },
    })
  const state = await openState({ folder: await temporaryFolder() })
  onTestFinished(() => state.close())
  const { ledger } = state
  const notes = createRunNotes(state)
  const dataDir = await temporaryFolder()
  const request = { dryRun: true, reasons: ['gateway_issue'] }
  const plan = toRecoveryPlan({
    input: parseRecoveryInput(request),
    run: 'recovery-1',
    execution: { workflowId: 'recovery-1', runId: 'first' },
    startedAt: new Date().toISOString(),
    identity: { workspace, baseUrl: sandbox.url, mode: 'live', store: state.storeId },
    settleMs: 20,
  })
  await saveRecoveryPlan({ dataDir, notes, plan, input: request })
  const { preview } = await takeSnapshot({
    deps: {
      ledger,
      dataDir,
      notes,
      shared: cached(dataDir),
      attempt: 0,
      holdLease: () => Promise.resolve(),
      concurrency: 2,
      readLagMs: 0,
    },
    plan,
    billing: clientOf(sandbox),
    signal: new AbortController().signal,
    onProgress: () => undefined,
  })
  expect(preview.toResume).toBe(8)

  const [id = ''] = sandbox.control.ids({ resource: 'subscriptions' })
  await stageChanges({ ledger, run: 'other', kind: resumeSubscription, changes: [{ row: 1, body: { id } }] })
  const other = await ledger.row({ run: 'other', row: 1 })
  await ledger.move({
    id: other!.id,
    from: ['staged'],
    patch: { state: 'done', outcome: 'recovered', sends: 1, sentAt: Date.now() },
  })

  await writeRecoveryReport({ ledger, notes, plan, dataDir })
  const csv = await readFile(join(dataDir, plan.folder, 'recovery.csv'), 'utf8')
  expect(csv.match(/would be resumed/g)).toHaveLength(8)
})
