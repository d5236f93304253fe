import { join } from 'node:path'
import type { Billing } from '../billing/client.ts'
import { defaultLimits, type Limits } from '../changes/limits.ts'
import { markSeenInList } from '../changes/seen-in-list.ts'
import { importKinds } from '../imports/import-kind.ts'
import type { ImportLimits, ImportPlan } from '../imports/import-plan.ts'
import { readRunNotes } from '../imports/run-notes.ts'
import type { SegmentInput, SendStep } from './change-segment.ts'
import type { ActivityDeps } from './deps.ts'
import { gapOf } from './import-gap.ts'
import { type SendDeps, sendSegment } from './send-segment.ts'

type ImportDeps = SendDeps & {
  /** The runs that this process has staged, or whose list it has looked at since it started. */
  stagedHere: Set<string>
}

/** Sends what an import has staged; see `sendSegment`. */
export function createSendImport(options: ImportDeps) {
  return async function sendImport(
    input: SegmentInput & { plan: ImportPlan; limits: ImportLimits },
  ): Promise<SendStep> {
    const { plan, limits } = input
    const { deps } = options
    const { run, settleMs, breakerWaitsMs } = plan
    const { staged } = await readRunNotes(join(deps.dataDir, plan.folder))
    const work = {
      run,
      kind: importKinds[plan.kind].change,
      settleMs,
      // Only resumes have attempts.
      attempts: { most: 1, waitsMs: [0] },
      limits: limitsOf({ deps, limits }),
      ...(breakerWaitsMs && { breakerWaitsMs }),
    }
    const { requestsPerSecond } = limits
    const gap = gapOf({ deps, plan, staged })
    const { newestBefore } = staged ?? {}
    return await sendSegment({
      ...options,
      plan,
      work,
      input,
      requestsPerSecond,
      gap,
      beforeSending: (look) => lookAtList({ ...options, ...look, plan, newestBefore }),
    })
  }
}

/**
 * A process that has not staged the run can't know what was put back from a backup before it started. For retentions the
 * service's own list tells: it is read once, before the first change is sent.
 */
async function lookAtList({
  deps,
  stagedHere,
  plan,
  ...look
}: ImportDeps & {
  plan: ImportPlan
  billing: Billing
  signal: AbortSignal
  newestBefore: string | undefined
}): Promise<void> {
  const { run } = plan
  if (plan.kind !== 'retentions' || stagedHere.has(run)) return
  const { workspace, mode } = plan.identity
  const { ledger } = deps.state
  const { readLagMs, concurrency } = deps
  const [unsent] = await ledger.page({ run, state: 'staged', limit: 1 })
  if (unsent !== undefined)
    await markSeenInList({ ledger, run, workspace, mode, readLagMs, concurrency, ...look })
  stagedHere.add(run)
}

function limitsOf({ deps, limits }: { deps: ActivityDeps; limits: ImportLimits }): Limits {
  const { concurrency = deps.concurrency, maxChanges, maxFailures, maxFailureShare } = limits
  return {
    inFlight: concurrency,
    maxFailureShare: maxFailureShare ?? defaultLimits.maxFailureShare,
    ...(maxChanges !== undefined && { maxChanges }),
    ...(maxFailures !== undefined && { maxFailures }),
  }
}
