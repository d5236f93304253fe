import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { resumeSubscription } from '../../../core/changes/kinds/resume-subscription.ts'
import { readCandidates } from '../../../core/recoveries/candidates.ts'
import { takeRight } from '../../../core/changes/send/send-right.ts'
import {
  leaseOf,
  parseRecoveryInput,
  type RecoveryInput,
  type RecoveryPlan,
} from '../../../core/recoveries/input.ts'
import { saveRecoveryPlan, toRecoveryPlan } from '../../../core/recoveries/open.ts'
import { writeRecoveryReport } from '../../../core/recoveries/report.ts'
import { takeSnapshot } from '../../../core/recoveries/snapshot.ts'
import { createRunNotes } from '../../../core/runs/run-notes.ts'
import { openState } from '../../../core/state/open.ts'
import { cached } from '../../../core/storage/cached.ts'
import { createFolderStore } from '../../../core/storage/folder-store.ts'
import type { Sandbox } from '../../../sandbox/sandbox.ts'
import { clientOf, stageChanges, startSandbox, workspace } from '../changes/engine.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'

/** The snapshots of recoveries over one state, each taken by a worker with an empty folder. */
async function startSnapshots(sandbox: Sandbox) {
  const billing = clientOf(sandbox)
  const state = await openState({ folder: await temporaryFolder() })
  onTestFinished(() => state.close())
  const { ledger, leases } = state
  const store = createFolderStore(await temporaryFolder())
  const notes = createRunNotes({ notes: state.notes, attempt: 1 })
  const begin = async (run: string, input: RecoveryInput = {}, folder?: string) => {
    const dataDir = folder ?? (await temporaryFolder())
    const plan = toRecoveryPlan({
      input: parseRecoveryInput(input),
      run,
      execution: { workflowId: run, runId: 'first' },
      startedAt: new Date().toISOString(),
      identity: { workspace, baseUrl: sandbox.url, mode: 'live', store: state.storeId },
      settleMs: 20,
    })
    await saveRecoveryPlan({ dataDir, notes, plan, input })
    return plan
  }
  const take = async (plan: RecoveryPlan, folder?: string) => {
    const dataDir = folder ?? (await temporaryFolder())
    const lease = { name: leaseOf(plan), owner: plan.execution }
    return await takeSnapshot({
      deps: {
        ledger,
        dataDir,
        shared: cached(dataDir, store),
        notes,
        attempt: 1,
        holdLease: async () => void (await leases.take({ ...lease, isClosed: () => Promise.resolve(true) })),
        concurrency: 2,
        readLagMs: 0,
      },
      plan,
      billing,
      signal: new AbortController().signal,
      onProgress: () => undefined,
    })
  }
  const rowsOf = ({ run }: RecoveryPlan) => Array.fromAsync(ledger.rows({ run }))
  return { ledger, notes, begin, take, rowsOf }
}

/** A service whose subscriptions all need attention, for a reason that a resume can fix. */
async function startBroken(subscriptions: number) {
  const counts = { subscriptions, customers: 4, plans: 2 }
  const sandbox = await startSandbox({ counts, needsAttention: 1 })
  const set = (id: unknown, fields: object) =>
    sandbox.control.update({ resource: 'subscriptions', id: String(id), fields: { ...fields } })
  for (const id of sandbox.control.ids({ resource: 'subscriptions' }))
    set(id, { status: 'needs_attention', needs_attention_reason: 'gateway_issue', cancelled: null })
  return { sandbox, set }
}

test('the table of a dry run says what its preview counts, although another recovery has resumed some of them since', async () => {
  const { sandbox } = await startBroken(8)
  const { ledger, notes, begin, take } = await startSnapshots(sandbox)
  const dataDir = await temporaryFolder()
  const plan = await begin('recovery-1', { dryRun: true, reasons: ['gateway_issue'] }, dataDir)
  const { preview } = await take(plan, dataDir)
  expect(preview.toResume).toBe(8)
  const [id = ''] = sandbox.control.ids({ resource: 'subscriptions' })
  await stageChanges({ ledger, run: 'other', kind: resumeSubscription, changes: [{ row: 1, body: { id } }] })
  const other = await ledger.row({ run: 'other', row: 1 })
  const patch = { state: 'done', outcome: 'recovered', sends: 1, sentAt: Date.now() } as const
  await ledger.move({ id: other!.id, from: ['staged'], patch })
  await writeRecoveryReport({ ledger, notes, plan, dataDir })
  const csv = await readFile(join(dataDir, plan.folder, 'recovery.csv'), 'utf8')
  expect(csv.match(/would be resumed/g)).toHaveLength(8)
})

test('a worker that is lost with its folder after it staged subscriptions leaves the next one the same list with the same list values, whatever the service lists by then', async () => {
  const { sandbox } = await startBroken(8)
  const { ledger, notes, begin, take, rowsOf } = await startSnapshots(sandbox)
  const plan = await begin('recovery-1')

  const lost = await take(plan)
  const rows = await rowsOf(plan)
  expect([lost.staged, rows.length]).toEqual([8, 8])
  // It was lost before it could say that all are staged.
  await notes.write(plan.run, { snapshot: null })
  const first = await ledger.row({ run: plan.run, row: 1 })
  const isGone = sandbox.control.delete({ resource: 'subscriptions', id: first?.key ?? '' })
  expect(isGone).toBe(true)
  for (const plan of sandbox.control.ids({ resource: 'plans' }))
    sandbox.control.update({ resource: 'plans', id: plan, fields: { amount: 1 } })

  const next = await take(plan)
  expect([next.staged, next.candidates]).toEqual([8, 8])
  expect(await rowsOf(plan)).toEqual(rows)
})

test('what a recovery that died had resumed is looked up before the next one decides what it resumes, and counts there', async () => {
  const { sandbox, set } = await startBroken(3)
  const { ledger, begin, take, rowsOf } = await startSnapshots(sandbox)
  const input = { attempts: 2, coolDown: '0s' }
  const dead = await begin('recovery-1', input)
  await take(dead)
  const lease = { name: leaseOf(dead), owner: dead.execution, attempt: 1 }
  const sender = await takeRight({ ledger, run: dead.run, lease })
  const [one, two, three] = await rowsOf(dead)
  // It resumed two of them, and died before it had their answers.
  for (const { id } of [one!, two!]) await ledger.claim({ sender, id, sends: 0, at: Date.now() })
  set(two!.key, { status: 'active', needs_attention: null, needs_attention_reason: null })

  const next = await begin('recovery-2', input)
  await take(next)
  expect(await rowsOf(dead)).toMatchObject([
    { state: 'parked', outcome: 'fellBack', sends: 1, holdsKey: 0 },
    { state: 'done', outcome: 'recovered', sends: 1 },
    { state: 'dropped', outcome: 'notTried', sends: 0 },
  ])
  expect(await rowsOf(next)).toMatchObject([
    { key: one!.key, state: 'staged', attemptsBefore: 1 },
    { key: three!.key, state: 'staged', attemptsBefore: 0 },
  ])
})

test('the snapshot of a list that ignores its order has all of it, and is not proven', async () => {
  const { sandbox } = await startBroken(40)
  sandbox.control.setFaults({ faults: [{ kind: 'ignoreOrdering' }] })
  const { begin, take } = await startSnapshots(sandbox)
  const snapshot = await take(await begin('recovery-1'))
  expect(snapshot).toMatchObject({ proven: false, candidates: 40, staged: 40 })
  expect(snapshot.reasons).toEqual([expect.stringContaining('is not honoured')])
})

test('a subscription is counted once, although the list had to be read again page by page', async () => {
  const { sandbox } = await startBroken(250)
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
