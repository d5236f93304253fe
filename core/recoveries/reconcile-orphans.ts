import { setTimeout as wait } from 'node:timers/promises'
import { join } from 'node:path'
import type { Billing } from '../billing/client.ts'
import { closeRemaining } from '../changes/reconcile/close-remaining.ts'
import { resumeSubscription } from '../changes/kinds/resume-subscription.ts'
import { createSendRight } from '../changes/send/send-right.ts'
import { markClaimed } from '../changes/restored-ledger.ts'
import { reconcileChanges } from '../changes/reconcile/reconcile.ts'
import { toFileName } from '../storage/file-name.ts'
import { type RecoveryPlan, waitsOf } from './plan.ts'
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
  deps: { ledger: Ledger; dataDir: string; concurrency: number }
  plan: RecoveryPlan
  billing: Billing
  signal: AbortSignal
}): Promise<number> {
  const { ledger } = deps
  const { workspace, mode } = plan.identity
  const { settleMs, verifyMs } = plan
  let lookedUp = 0
  for (const run of await ledger.unfinishedRuns({ workspace, mode, kind: resumeSubscription.name })) {
    if (run === plan.run) continue
    await markClaimed({ ledger, run, folder: join(deps.dataDir, 'recoveries', toFileName(run)) })
    await createSendRight({ ledger, run }).hold()
    for (;;) {
      const { reconciled, nextLookupAt } = await reconcileChanges({
        ledger,
        run,
        kind: resumeSubscription,
        billing,
        settleMs,
        verifyMs,
        attempts: { most: plan.attempts, waitsMs: waitsOf(plan) },
        inFlight: deps.concurrency,
        timeBoxMs: Infinity,
        signal,
      })
      signal.throwIfAborted()
      lookedUp += reconciled.done + reconciled.staged + reconciled.parked
      if (nextLookupAt === undefined) break
      const ms = Math.min(Math.max(0, nextLookupAt - ledger.now()), longestTimerMs)
      await wait(ms, undefined, { signal }).catch(() => signal.throwIfAborted())
    }
    await closeRemaining({ ledger, run, why: 'the run ended without a report' })
  }
  return lookedUp
}
