import { type Decision, resolveChange } from '../changes/resolve.ts'
import type { ChangeRun } from '../changes/run-notes.ts'
import type { ActivityDeps } from './deps.ts'
import { refusing } from './import-errors.ts'

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
    try {
      await resolveChange({ ledger: deps.state.ledger, run: plan.run, ...resolution })
    } catch (error) {
      throw refusing(error)
    }
  }
}
