import { mkdir } from 'node:fs/promises'
import { dirname, join, posix } from 'node:path'
import type { Billing } from '../billing/client.ts'
import { resumeSubscription } from '../changes/kinds/resume-subscription.ts'
import { closeRemaining } from '../changes/close.ts'
import { runSegment } from '../changes/send/segment.ts'
import { takeRight } from '../changes/send/send-right.ts'
import {
  createChangesFile,
  fetchChanges,
  type OnKeyHeld,
  shareChanges,
  stageKeptChanges,
  toNewChange,
  writeCheckpoint,
} from '../changes/staged-changes.ts'
import { toMs } from '../runs/inputs.ts'
import type { RunNotes } from '../runs/run-notes.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { SharedFolder } from '../storage/cached.ts'
import { type Candidate, readCandidates } from './candidates.ts'
import { toDryRow, writeRecoveryCsv } from './csv.ts'
import { leaseOf, type CandidateFilter, type RecoveryPlan, recoveryFiles, waitsOf } from './input.ts'
import type { RecoveryNotes, SnapshotNote } from './open.ts'
import { type Selected, selectCandidates, toPreview } from './select.ts'

interface Work {
  deps: {
    ledger: Ledger
    dataDir: string
    shared: SharedFolder
    notes: RunNotes
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

/**
 * Reads what needs attention, decides on each subscription and stages it; resumes nothing. A retry stages
 * the same ones. A dry run stages nothing.
 */
export async function takeSnapshot(work: Work): Promise<SnapshotNote> {
  const { deps, plan, billing, signal, onProgress } = work
  const { notes, readLagMs } = deps
  const { run, dryRun, maxPages } = plan
  const before = await notes.read<RecoveryNotes>(run)
  if (before.snapshot !== undefined) return before.snapshot
  if (before.decided !== undefined) return await stage(work, before.decided)
  if (!dryRun) await reconcileOrphans(work)
  const { candidates, ...outcome } = await readCandidates({
    run,
    notes,
    billing,
    testMode: plan.identity.mode === 'test',
    readLagMs,
    maxPages,
    signal,
    onProgress: (now) => onProgress({ phase: 'reading the list', ...now }),
  })
  const rows = await select(work, candidates, before.asked?.narrowing)
  const kept = dryRun ? await writeDryRun(work, rows) : await keepRows(work, rows)
  const takenAt = new Date().toISOString()
  const decided = {
    takenAt,
    ...outcome,
    candidates: candidates.length,
    ...kept,
    preview: toPreview(rows, Date.now()),
  }
  await notes.write(run, { decided })
  return await stage(work, decided)
}

async function select(
  { deps, plan }: Work,
  candidates: readonly Candidate[],
  narrowing: CandidateFilter = {},
): Promise<Selected[]> {
  const { workspace, mode } = plan.identity
  const keys = candidates.map(({ id }) => id)
  const history = await deps.ledger.history({ workspace, mode, kind: resumeSubscription.name, keys })
  return selectCandidates({ plan, ...narrowing, candidates, history })
}

/** Writes recovery.csv of a dry run, which has no rows in the ledger. */
async function writeDryRun({ deps, plan }: Work, rows: readonly Selected[]): Promise<{ staged: 0 }> {
  const to = join(deps.dataDir, plan.folder, recoveryFiles.results)
  await mkdir(dirname(to), { recursive: true })
  await writeRecoveryCsv({ rows: rows.map(toDryRow), to })
  await deps.shared.keep(to)
  return { staged: 0 }
}

/** Keeps the rows to stage: by the time an attempt is repeated, the list has changed. */
async function keepRows(
  { deps, plan }: Work,
  rows: readonly Selected[],
): Promise<{ staged: number; changes: string }> {
  const { dataDir, shared, attempt } = deps
  const kind = resumeSubscription
  const changes = posix.join(plan.folder, 'staged', String(attempt))
  const folder = join(dataDir, changes)
  await using file = await createChangesFile(folder, { ...plan.identity, run: plan.run, kind: kind.name })
  for (const change of rows) file.add(toNewChange({ kind, change }))
  const staged = await file.keep()
  await shareChanges(shared, folder)
  return { staged, changes }
}

/** Stages what was decided, unless it is a dry run. */
async function stage(work: Work, decided: RecoveryNotes['decided']): Promise<SnapshotNote> {
  const { deps, plan } = work
  const { ledger, notes, shared, dataDir } = deps
  const { run } = plan
  const { changes, ...snapshot } = decided
  if (changes !== undefined) {
    const folder = join(dataDir, changes)
    await fetchChanges(shared, folder)
    await stageKeptChanges({ ledger, folder, onHeld: leaveToNextRecovery })
    const { asked } = await notes.read<RecoveryNotes>(run)
    await writeCheckpoint(shared, { folder, run, staged: snapshot.staged, notes: { plan, asked, snapshot } })
  }
  await notes.write(run, { snapshot })
  return snapshot
}

/** Leaves a subscription that an earlier recovery has not yet reconciled to the next recovery. */
const leaveToNextRecovery: OnKeyHeld = async (held) =>
  new Map(
    held.map(({ row, by }) => {
      const error = `row ${by.row} of ${by.run} has not finished with it (${by.state}); the next recovery checks it again`
      return [row, { state: 'dropped', outcome: 'notTried', error }]
    }),
  )

/**
 * Reconciles recoveries that were terminated or whose server was lost: looks up the resumes whose result is
 * unknown, and releases the subscriptions not yet resumed. Only one recovery is active at a time, so no other run
 * owns anything unfinished.
 */
async function reconcileOrphans({ deps, plan, billing, signal }: Work): Promise<void> {
  const { ledger, concurrency, attempt } = deps
  const { workspace, mode } = plan.identity
  const lease = { name: leaseOf(plan), owner: plan.execution, attempt }
  const unfinished = await ledger.unfinishedRuns({ workspace, mode, kind: resumeSubscription.name })
  // After a lost lease, the list may include an active recovery.
  await deps.holdLease()
  for (const run of unfinished) {
    if (run === plan.run) continue
    const sender = await takeRight({ ledger, run, lease })
    await runSegment({
      ledger,
      run,
      kind: resumeSubscription,
      billing,
      settleMs: plan.settleMs,
      verifyMs: toMs(plan.verifyAfter),
      attempts: { most: plan.attempts, waitsMs: waitsOf(plan) },
      limits: { concurrency },
      canarySize: { size: 0 },
      breakers: {},
      lookupsOnly: true,
      sender,
      ms: Infinity,
      signal,
    })
    signal.throwIfAborted()
    await closeRemaining({ ledger, run, why: 'the run ended without a report', sender })
  }
}
