import type { RunRates } from '../../core/billing/run-rates.ts'
import { type RecoveryLimits, type RecoveryPlan, leasesOf } from '../../core/recoveries/input.ts'
import type { Snapshot } from '../../core/recoveries/open.ts'
import { takeSnapshot } from '../../core/recoveries/snapshot.ts'
import { toPreviewTables } from '../../core/recoveries/view.ts'
import { refuseOlderThanMark, sharedMark } from '../../core/state/claims-mark.ts'
import type { Table } from '../../core/runs/view/view.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'

interface SnapshotInput {
  plan: RecoveryPlan
  /** The current limits, which people may have changed since the plan was made. */
  limits?: RecoveryLimits
}

/** Reads the subscriptions that need attention and stages them; see `takeSnapshot`. */
export function createSnapshotRecovery({ deps, rates }: { deps: ActivityDeps; rates: RunRates }) {
  return async (context: StepContext, input: SnapshotInput): Promise<Snapshot & { tables: Table[] }> => {
    const { plan, limits = plan.limits } = input
    const { signal } = context
    let progress = { phase: 'checking what an earlier recovery left open' }
    context.report(() => progress)
    const holdLease = () => context.takeLeases(leasesOf(plan), plan.execution)
    await holdLease()
    await refuseOlderThanMark({ ledger: deps.state.ledger, mark: sharedMark(deps) })
    const { requestsPerSecond } = limits
    const billing = context.watch(rates.forRun({ run: plan.run, requestsPerSecond }))
    const snapshot = await context.outlast(() =>
      takeSnapshot({
        deps: {
          ...deps,
          notes: context.notes,
          holdLease,
          attempt: context.attempt,
          ledger: deps.state.ledger,
        },
        plan,
        billing,
        signal,
        onProgress: (now) => (progress = now),
      }),
    )
    return { ...snapshot, tables: toPreviewTables(snapshot.preview) }
  }
}
