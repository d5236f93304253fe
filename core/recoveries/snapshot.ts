import { join } from 'node:path'
import type { Billing } from '../billing/client.ts'
import { resumeSubscription } from '../changes/kinds/resume-subscription.ts'
import { countOpen, markCanary, openCanary } from '../changes/send/canary.ts'
import { withKey } from '../changes/stage-changes.ts'
import { keepStagedChanges, type OnKeyHeld, stageKeptChanges } from '../changes/staged-changes.ts'
import { refuseOlderThanTold } from '../changes/watched-ledger.ts'
import { readNote } from '../runs/run-files.ts'
import type { StepFolder } from '../runs/step-folder.ts'
import type { KeyHistory } from '../state/ledger/key-queries.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import { replaceFile } from '../storage/durable.ts'
import { type Candidate, readCandidates } from './candidates.ts'
import { selectCandidates, type Selection, toPreview } from './select.ts'
import { toDryRows } from './csv.ts'
import { type RecoveryPlan, recoveryFiles } from './input.ts'
import { reconcileOrphans } from './reconcile-orphans.ts'
import { readSavedPlan, type Snapshot, type SnapshotNote } from './open.ts'

interface Work {
  deps: {
    ledger: Ledger
    dataDir: string
    /** Makes what was read so far be there for the next attempt, wherever that runs. */
    keep: StepFolder['keep']
    /** @throws {Busy} if another recovery has begun meanwhile */
    holdLease: () => Promise<void>
    attempt: number
    /** Orphans that are looked up at once. */
    concurrency: number
    /** How long a record may stay invisible after its `created`, in ms. */
    readLagMs: number
  }
  plan: RecoveryPlan
}

/** The number of keys looked up, and of changes staged, at once. */
const batchRows = 1_000

/**
 * Reads what needs attention, decides on each subscription and stages it; resumes nothing. A retry stages
 * the same ones. A dry run stages nothing.
 */
export async function takeSnapshot(
  options: Work & {
    billing: Billing
    signal: AbortSignal
    onProgress: (progress: { phase: string }) => void
  },
): Promise<Snapshot> {
  const { deps, plan, billing, signal, onProgress } = options
  const folder = join(deps.dataDir, plan.folder)
  const before = await readNote<SnapshotNote>(join(folder, recoveryFiles.snapshot))
  if (before !== undefined) {
    if (!plan.dryRun)
      await refuseOlderThanTold({
        ledger: deps.ledger,
        run: plan.run,
        told: { rows: before.staged, claims: 0 },
      })
    return await withOpen({ deps, plan, note: before })
  }
  const settledBefore = plan.dryRun ? 0 : await reconcileOrphans({ deps, plan, billing, signal })
  const read = await readCandidates({
    folder,
    billing,
    testMode: plan.identity.mode === 'test',
    readLagMs: deps.readLagMs,
    maxPages: plan.maxPages,
    signal,
    onProgress: (now) => onProgress({ phase: 'reading the list', ...now }),
  })
  const { candidates, ...outcome } = read
  const { rows, leftOut } = await select({ deps, plan, candidates })
  if (plan.dryRun) await replaceFile(join(folder, recoveryFiles.decided), JSON.stringify(toDryRows({ rows })))
  const staged = plan.dryRun ? 0 : await stageAll({ deps, plan, rows })
  const takenAt = new Date().toISOString()
  const preview = toPreview({ rows }, Date.now())
  const note = { takenAt, ...outcome, candidates: candidates.length, leftOut, staged, preview, settledBefore }
  await replaceFile(join(folder, recoveryFiles.snapshot), JSON.stringify(note, null, 2))
  return await withOpen({ deps, plan, note })
}

async function select({
  deps,
  plan,
  candidates,
}: Work & { candidates: readonly Candidate[] }): Promise<Selection> {
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
async function stageAll({ deps, plan, rows }: Work & { rows: Selection['rows'] }): Promise<number> {
  const folder = join(deps.dataDir, plan.folder)
  const kind = resumeSubscription
  async function* batches() {
    for (let from = 0; from < rows.length; from += batchRows)
      yield rows.slice(from, from + batchRows).map(({ change }) => withKey({ kind, change }))
  }
  const of = { ...plan.identity, run: plan.run, kind: kind.name }
  const staged = await keepStagedChanges({ folder, of, changes: batches() })
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

async function withOpen({ deps, plan, note }: Work & { note: SnapshotNote }): Promise<Snapshot> {
  const { run } = plan
  const { ledger } = deps
  await markCanary({ ledger, run, kind: resumeSubscription, size: plan.canary })
  return { ...note, open: await countOpen({ ledger, run }), canary: await openCanary({ ledger, run }) }
}
