import { join } from 'node:path'
import type { Billing } from '../core/billing/client.ts'
import { openClaimJournal } from '../core/changes/claim-journal.ts'
import { closeGap, type GapOptions } from '../core/changes/ledger-gap.ts'
import { showTestMode } from '../core/changes/send/probe-mode.ts'
import type { ChangeRun } from '../core/runs/run-files.ts'
import type { Attempts } from '../core/runs/attempts.ts'
import { type ChangeWork, Segment, type SegmentInput, type SendStep } from '../core/changes/send/segment.ts'
import type { ActivityDeps } from './deps.ts'
import { NotWoken } from '../core/imports/refusals.ts'
import type { RunRates } from '../core/billing/run-rates.ts'
import type { StepContext } from './step.ts'

export interface SendDeps {
  deps: ActivityDeps
  rates: RunRates
  attempts: Attempts
}

/**
 * Sends what a run has staged, and settles what became of it, for some time or to the end. Safe to be tried again:
 * every request is claimed in the ledger and in the run's journal before it leaves, and one without an answer is looked
 * up, never repeated. A ledger that was put back from a backup is fixed first.
 * Stopping it takes no more changes and awaits those on their way; so does a later attempt of the run.
 */
export async function sendSegment(
  options: SendDeps & {
    context: StepContext
    plan: ChangeRun
    work: ChangeWork
    input: SegmentInput
    /** The run's share of the process's rate. */
    requestsPerSecond?: number | undefined
    /** What the ledger is held against. */
    gap: Pick<GapOptions, 'staged' | 'onHeld'>
    /** Comes before the first change is sent. */
    beforeSending?: (options: { billing: Billing; signal: AbortSignal }) => Promise<void>
  },
): Promise<SendStep> {
  const { deps, rates, attempts, context, plan, work, input, requestsPerSecond, gap, beforeSending } = options
  const { ledger } = deps.state
  const { run, identity } = plan
  if (!deps.mayWrite(context.owner.workflowId)) throw new NotWoken(plan)
  const told = claimsTold(context, input)
  context.report(() => ({ claims: told }))
  const billing = rates.of({ run, requestsPerSecond })
  const folder = join(deps.dataDir, plan.folder)
  const send = async (signal: AbortSignal) => {
    if (identity.mode === 'test') await showTestMode({ billing, signal })
    await closeGap({ ledger, run, space: identity, kind: work.kind, folder, told, signal, ...gap })
    await beforeSending?.({ billing, signal })
    await using journal = await openClaimJournal(folder)
    const segment = new Segment({ ledger, work, input, journal, billing, signal })
    context.report(() => segment.progress)
    return await segment.run()
  }
  const step = await attempts.take({ run, signal: context.signal, work: send })
  const { ended, counts } = step
  deps.observer.did({ did: 'sent', run, kind: work.kind.name, ended, counts })
  return step
}

/** How many claims the run's journal had when Temporal last heard of it: from this step's last attempt, or before it. */
function claimsTold({ lastReport }: StepContext, { claims }: SegmentInput): number {
  const told = lastReport as { claims?: unknown } | undefined
  return Math.max(claims, typeof told?.claims === 'number' ? told.claims : 0)
}
