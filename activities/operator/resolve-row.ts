import { type Decision, resolveChange } from '../../core/changes/reconcile/resolve.ts'
import type { ChangeRun } from '../../core/runs/run-files.ts'
import type { ActivityDeps } from '../deps.ts'
import { refusing } from '../../core/imports/refusals.ts'
import { refuseOther } from '../../core/runs/identity.ts'

/** Takes down what a person found out about a parked row. */
export function createResolveRow(deps: ActivityDeps) {
  return async function resolveRow({
    plan,
    ...resolution
  }: {
    plan: ChangeRun
    row: number
    decision: Decision
    by: string
    why: string
  }): Promise<void> {
    refuseOther({ run: plan.identity, worker: deps.identity })
    try {
      await resolveChange({ ledger: deps.state.ledger, run: plan.run, ...resolution })
    } catch (error) {
      throw refusing(error)
    }
  }
}
