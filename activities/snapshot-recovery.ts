import { cancellationSignal, heartbeat } from '@temporalio/activity'
import { join } from 'node:path'
import { chooseCanary } from '../changes/canary.ts'
import { createClaimJournal } from '../changes/claim-journal.ts'
import { resumeSubscription } from '../changes/kinds/resume-subscription.ts'
import { keepStagedChanges, stageKeptChanges } from '../changes/staged-changes.ts'
import { replaceFile } from '../destinations/durable.ts'
import { readNote } from '../changes/run-notes.ts'
import type { Candidate } from '../recoveries/candidate.ts'
import { toPreview } from '../recoveries/preview.ts'
import { readCandidates } from '../recoveries/read-candidates.ts'
import { type RecoveryLimits, type RecoveryPlan, recoveryFiles } from '../recoveries/recovery-plan.ts'
import { readSavedPlan, type SnapshotNote } from '../recoveries/run-notes.ts'
import { selectCandidates, type Selection } from '../recoveries/select-candidates.ts'
import type { KeyHistory } from '../state/key-reads.ts'
import type { ActivityDeps } from './deps.ts'
import { claimRecovery } from './open-recovery.ts'
import { closeRecoveryGap, leaveHeld } from './recovery-gap.ts'
import type { RunRates } from './run-rates.ts'
import { settleLeftovers } from './settle-leftovers.ts'
import { withHeartbeat } from './with-heartbeat.ts'

/** What of a recovery is staged, and how much of it is still to be resumed. */
export interface Snapshot extends SnapshotNote {
  open: number
  /** Rows that go first, of each reason; none where the run was resuming before. */
  canary: number[]
}

interface Work {
  deps: ActivityDeps
  plan: RecoveryPlan
}

/** So many keys are asked for, and so many changes staged, at once. */
const batchRows = 1_000

/**
 * Reads what needs attention, settles what becomes of each, and stages it. Nothing is resumed. Another try goes on
 * where this one ended; in a dry run nothing is staged.
 */
export function createSnapshotRecovery({ deps, rates }: { deps: ActivityDeps; rates: RunRates }) {
  return async function snapshotRecovery({
    plan,
    limits = plan.limits,
  }: {
    plan: RecoveryPlan
    /** As they are now: people may have changed them since the plan was made. */
    limits?: RecoveryLimits
  }): Promise<Snapshot> {
    await claimRecovery({ deps, plan })
    const folder = join(deps.dataDir, plan.folder)
    let progress: object = { phase: 'looking for what an earlier recovery left' }
    return await withHeartbeat({
      report: () => heartbeat(progress),
      work: async () => {
        const before = await readNote<SnapshotNote>(join(folder, recoveryFiles.snapshot))
        if (before !== undefined) {
          if (!plan.dryRun) await closeRecoveryGap({ deps, plan })
          return await withOpen({ deps, plan, note: before })
        }
        const billing = rates.of({ run: plan.run, requestsPerSecond: limits.requestsPerSecond })
        const signal = cancellationSignal()
        const settledBefore = plan.dryRun ? 0 : await settleLeftovers({ deps, plan, billing, signal })
        const read = await readCandidates({
          journal: join(folder, recoveryFiles.journal),
          billing,
          testMode: plan.identity.mode === 'test',
          concurrency: deps.concurrency,
          readLagMs: deps.readLagMs,
          maxPages: plan.maxPages,
          signal,
          onProgress: (now) => (progress = { phase: 'reading the list', ...now }),
        })
        const { candidates, ...of } = read
        const { rows, leftOut } = await select({ deps, plan, candidates })
        const staged = plan.dryRun ? 0 : await stageAll({ deps, plan, rows })
        const takenAt = new Date().toISOString()
        const preview = toPreview({ rows }, Date.now())
        const note = {
          takenAt,
          ...of,
          candidates: candidates.length,
          leftOut,
          staged,
          preview,
          settledBefore,
        }
        await replaceFile(join(folder, recoveryFiles.snapshot), JSON.stringify(note, null, 2))
        return await withOpen({ deps, plan, note })
      },
    })
  }
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
    const past = await deps.state.ledger.history({ workspace, mode, kind: resumeSubscription.name, keys })
    for (const [key, value] of past) history.set(key, value)
  }
  return selectCandidates({ plan, ...narrowing, candidates, history })
}

/** Stages the rows, after they were kept beside the run. Returns their number. */
async function stageAll({ deps, plan, rows }: Work & { rows: Selection['rows'] }): Promise<number> {
  const folder = join(deps.dataDir, plan.folder)
  async function* batches() {
    for (let from = 0; from < rows.length; from += batchRows)
      yield rows.slice(from, from + batchRows).map(({ change }) => change)
  }
  const staged = await keepStagedChanges({ folder, changes: batches() })
  await createClaimJournal(folder)
  const place = { ledger: deps.state.ledger, run: plan.run, space: plan.identity, folder }
  await stageKeptChanges({ ...place, kind: resumeSubscription, onHeld: leaveHeld })
  return staged
}

async function withOpen({ deps, plan, note }: Work & { note: SnapshotNote }): Promise<Snapshot> {
  const { run } = plan
  const { ledger } = deps.state
  let open = 0
  const lanes = new Set<string>()
  for (const { state, number, lane } of await ledger.counts({ run })) {
    if (state !== 'staged' && state !== 'sending' && state !== 'unknown') continue
    open += number
    lanes.add(lane)
  }
  const isFirst = plan.canary > 0 && (await ledger.claims({ run })) === 0
  const size = plan.canary
  const chosen = [...(isFirst ? lanes : [])].map((lane) =>
    chooseCanary({ ledger, run, kind: resumeSubscription, size, lane }),
  )
  return { ...note, open, canary: (await Promise.all(chosen)).flat().toSorted((a, b) => a - b) }
}
