import { join } from 'node:path'
import type { Billing } from '../../core/billing/client.ts'
import { markSeenInList } from '../../core/changes/seen-in-list.ts'
import { importKinds } from '../../core/imports/kinds.ts'
import { type ImportLimits, type ImportPlan, canarySize } from '../../core/imports/input.ts'
import { toMs } from '../../core/runs/duration.ts'
import { readRunNotes } from '../../core/imports/run-files.ts'
import type { SendInput, SendStep } from '../../core/changes/send/sending.ts'
import type { StepContext } from '../step.ts'
import { gapOf, leaseOf } from '../../core/imports/restored-ledger.ts'
import { gapDeps } from './gap-deps.ts'
import { type SendDeps, sendSegment } from '../changes/send-segment.ts'

type ImportDeps = SendDeps & {
  /** Runs whose list this process has checked, or whose changes it has staged. */
  stagedHere: Set<string>
}

/** Sends the staged changes of an import; see `sendSegment`. */
export function createSendImport(options: ImportDeps) {
  return async function sendImport(
    context: StepContext,
    input: SendInput & { plan: ImportPlan; limits: ImportLimits },
  ): Promise<SendStep> {
    const { plan, limits } = input
    const { deps } = options
    const { run, verifyAfter, breakerWaits } = plan
    // An execution that somebody reset continues as another one, which takes the lease over.
    await context.takeLeases([leaseOf(run)])
    const { staged } = await readRunNotes(join(context.folder.dataDir, plan.folder))
    const work = {
      run,
      kind: importKinds[plan.kind].change,
      settleMs: toMs(verifyAfter),
      // Only resumes are attempted several times.
      attempts: { most: 1, waitsMs: [0] },
      canarySize: canarySize(plan),
      breakerWaitsMs: breakerWaits?.map(toMs),
    }
    const { requestsPerSecond } = limits
    const gap = gapOf({ deps: gapDeps({ deps, context }), plan, staged })
    const { newestBefore } = staged ?? {}
    return await sendSegment({
      ...options,
      context,
      plan,
      work,
      input,
      lease: { name: leaseOf(run), owner: context.owner },
      requestsPerSecond,
      gap,
      beforeSending: (calls) => checkList({ ...options, ...calls, plan, newestBefore }),
    })
  }
}

/** Calls `markSeenInList` before the first send if this process has not staged the run; see there. */
async function checkList(
  options: ImportDeps & {
    plan: ImportPlan
    billing: Billing
    signal: AbortSignal
    newestBefore: string | undefined
  },
): Promise<void> {
  const { deps, stagedHere, plan, billing, signal, newestBefore } = options
  const { run } = plan
  if (!plan.listed || stagedHere.has(run)) return
  const { workspace, mode } = plan.identity
  const { ledger } = deps.state
  const { readLagMs } = deps
  const [unsent] = await ledger.page({ run, state: 'staged', limit: 1 })
  if (unsent !== undefined)
    await markSeenInList({
      ledger,
      run,
      workspace,
      mode,
      readLagMs,
      billing,
      signal,
      newestBefore,
    })
  stagedHere.add(run)
}
