import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Billing } from '../billing/client.ts'
import { resumeSubscription } from '../changes/kinds/resume-subscription.ts'
import { closeRemaining } from '../changes/close.ts'
import { reconcileChanges } from '../changes/reconcile/reconcile.ts'
import { countOpen, markCanary, openCanary } from '../changes/send/canary.ts'
import { createSendRight } from '../changes/send/sending.ts'
import {
  createChangesFile,
  type OnKeyHeld,
  stageKeptChanges,
  toNewChange,
} from '../changes/staged-changes.ts'
import { refuseOlderThanTold } from '../changes/old-ledger.ts'
import { toMs } from '../runs/duration.ts'
import { readNote } from '../runs/run-files.ts'
import type { StepFolder } from '../runs/step-folder.ts'
import type { KeyHistory } from '../state/ledger/queries.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import { replaceFile } from '../storage/durable.ts'
import { type Candidate, readCandidates } from './candidates.ts'
import { toDryRows } from './csv.ts'
import { leaseOf, type RecoveryPlan, recoveryFiles, waitsOf } from './input.ts'
import { readSavedPlan, type Snapshot, type SnapshotNote } from './open.ts'
import { selectCandidates, type Selection, toPreview } from './select.ts'

interface Work {
  deps: {
    ledger: Ledger
    dataDir: string
    /** Makes what was read so far be there for the next attempt, wherever that runs. */
    keep: StepFolder['keep']
    /** @throws {Busy} if another recovery has begun meanwhile */
    holdLease: () => Promise<void>
    /** When Temporal scheduled this attempt. */
    attempt: number
    /** Orphans that are looked up at once. */
    concurrency: number
    /** How long a record may stay invisible after its `created`, in ms. */
    readLagMs: number
  }
  plan: RecoveryPlan
  billing: Billing
  signal: AbortSignal
  onProgress: (progress: { phase: string }) => void
}

/** The number of keys looked up at once. */
const batchRows = 1_000

/**
 * Reads what needs attention, decides on each subscription and stages it; resumes nothing. A retry stages
 * the same ones. A dry run stages nothing.
 */
export async function takeSnapshot(work: Work): Promise<Snapshot> {
  const { deps, plan, billing, signal, onProgress } = work
  const { ledger, readLagMs } = deps
  const { run, dryRun, maxPages } = plan
  const folder = join(deps.dataDir, plan.folder)
  const before = await readNote<SnapshotNote>(join(folder, recoveryFiles.snapshot))
  if (before !== undefined) {
    if (!dryRun) await refuseOlderThanTold({ ledger, run, told: { rows: before.staged, claims: 0 } })
    return await withOpen(work, before)
  }
  const settledBefore = dryRun ? 0 : await reconcileOrphans(work)
  const { candidates, ...outcome } = await readCandidates({
    folder,
    billing,
    testMode: plan.identity.mode === 'test',
    readLagMs,
    maxPages,
    signal,
    onProgress: (now) => onProgress({ phase: 'reading the list', ...now }),
  })
  const { rows, leftOut } = await select(work, candidates)
  if (dryRun) await replaceFile(join(folder, recoveryFiles.decided), JSON.stringify(toDryRows({ rows })))
  const staged = dryRun ? 0 : await stageAll(work, rows)
  const takenAt = new Date().toISOString()
  const preview = toPreview({ rows }, Date.now())
  const note = { takenAt, ...outcome, candidates: candidates.length, leftOut, staged, preview, settledBefore }
  await replaceFile(join(folder, recoveryFiles.snapshot), JSON.stringify(note, null, 2))
  return await withOpen(work, note)
}

async function select({ deps, plan }: Work, candidates: readonly Candidate[]): Promise<Selection> {
  const { workspace, mode } = plan.identity
  const { narrowing = {} } = (await readSavedPlan(join(deps.dataDir, plan.folder))) ?? {}
  const history = new Map<string, KeyHistory>()
  for (let from = 0; from < candidates.length; from += batchRows) {
    const keys = candidates.slice(from, from + batchRows).map(({ id }) => id)
    const past = await deps.ledger.history({ workspace, mode, kind: resumeSubscription.name, keys })
    for (const [key, value] of past) history.set(key, value)
  }
  return selectCandidates({ plan, ...narrowing, candidates, history })
}

/** Stages the rows after saving them beside the run. Returns their number. */
async function stageAll({ deps, plan }: Work, rows: Selection['rows']): Promise<number> {
  const folder = join(deps.dataDir, plan.folder)
  const kind = resumeSubscription
  await using file = await createChangesFile(folder, { ...plan.identity, run: plan.run, kind: kind.name })
  for (const { change } of rows) file.add(toNewChange({ kind, change }))
  const staged = await file.keep()
  // From the first staged row on, the next attempt must stage the same ones: the list has changed by then.
  await deps.keep()
  await stageKeptChanges({ ledger: deps.ledger, folder, onHeld: leaveToNextRecovery })
  return staged
}

/** Leaves a subscription that an earlier recovery has not yet reconciled to the next recovery. */
const leaveToNextRecovery: OnKeyHeld = async (held) =>
  new Map(
    held.map(({ row, by }) => {
      const error = `row ${by.row} of ${by.run} has it and is ${by.state}: it is looked at again by the next recovery`
      return [row, { state: 'dropped', outcome: 'notTried', error }]
    }),
  )

async function withOpen({ deps: { ledger }, plan }: Work, note: SnapshotNote): Promise<Snapshot> {
  const { run, canary: size } = plan
  await markCanary({ ledger, run, kind: resumeSubscription, size })
  return { ...note, open: await countOpen({ ledger, run }), canary: await openCanary({ ledger, run }) }
}

/** A safe timer: Node fires timers of more than 24.8 days immediately. */
const longestTimerMs = 24 * 3_600_000

/**
 * Reconciles recoveries that were terminated or whose server was lost: looks up the resumes whose result is
 * unknown, and releases the subscriptions not yet resumed. Only one recovery is active at a time, so no other run
 * owns anything unfinished. Returns the number of subscriptions looked up.
 */
async function reconcileOrphans({ deps, plan, billing, signal }: Work): Promise<number> {
  const { ledger, concurrency, attempt } = deps
  const { workspace, mode } = plan.identity
  const lease = { name: leaseOf(plan), owner: plan.execution, attempt }
  let lookedUp = 0
  const unfinished = await ledger.unfinishedRuns({ workspace, mode, kind: resumeSubscription.name })
  // If another recovery has begun since this step was given up, it may be among them.
  await deps.holdLease()
  for (const run of unfinished) {
    if (run === plan.run) continue
    await createSendRight({ ledger, run, lease }).hold()
    for (;;) {
      const { reconciled, nextLookupAt } = await reconcileChanges({
        ledger,
        run,
        kind: resumeSubscription,
        billing,
        settleMs: plan.settleMs,
        verifyMs: toMs(plan.verifyAfter),
        attempts: { most: plan.attempts, waitsMs: waitsOf(plan) },
        concurrency,
        timeBoxMs: Infinity,
        signal,
      })
      signal.throwIfAborted()
      lookedUp += Object.values(reconciled).reduce((sum, number) => sum + number, 0)
      if (nextLookupAt === undefined) break
      const ms = Math.min(Math.max(0, nextLookupAt - ledger.now()), longestTimerMs)
      await wait(ms, undefined, { signal }).catch(() => signal.throwIfAborted())
    }
    await closeRemaining({ ledger, run, why: 'the run ended without a report' })
  }
  return lookedUp
}
