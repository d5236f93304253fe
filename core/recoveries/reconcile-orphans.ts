import { toMs } from '../runs/duration.ts'
import { setTimeout as wait } from 'node:timers/promises'
import type { Billing } from '../billing/client.ts'
import { closeRemaining } from '../changes/reconcile/close-remaining.ts'
import { resumeSubscription } from '../changes/kinds/resume-subscription.ts'
import { createSendRight } from '../changes/send/send-right.ts'
import { reconcileChanges } from '../changes/reconcile/reconcile.ts'
import { type RecoveryPlan, leaseOf, waitsOf } from './input.ts'
import type { Ledger } from '../state/ledger/ledger.ts'

/** A safe timer: Node fires timers of more than 24.8 days immediately. */
const longestTimerMs = 24 * 3_600_000

/**
 * Reconciles recoveries that were terminated or whose server was lost: looks up the resumes whose result is
 * unknown, and releases the subscriptions not yet resumed. Only one recovery is active at a time, so no other run
 * owns anything unfinished. Returns the number of subscriptions looked up.
 */
export async function reconcileOrphans({
  deps,
  plan,
  billing,
  signal,
}: {
  deps: {
    ledger: Ledger
    concurrency: number
    holdLease: () => Promise<void>
    /** When Temporal scheduled this attempt. */
    attempt: number
  }
  plan: RecoveryPlan
  billing: Billing
  signal: AbortSignal
}): Promise<number> {
  const { ledger } = deps
  const { workspace, mode } = plan.identity
  const { settleMs } = plan
  const lease = { name: leaseOf(plan), owner: plan.execution, attempt: deps.attempt }
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
        settleMs,
        verifyMs: toMs(plan.verifyAfter),
        attempts: { most: plan.attempts, waitsMs: waitsOf(plan) },
        concurrency: deps.concurrency,
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
