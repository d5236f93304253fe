import { type Decision, resolveChange } from '../changes/resolve.ts'
import type { ChangeRun } from '../changes/run-notes.ts'
import type { ActivityDeps } from './deps.ts'
import { refusing } from './import-errors.ts'

/** Records what a person found out about parked rows. Safe to retry. */
export function createResolveRow(deps: ActivityDeps) {
  return async function resolveRow({
    plan,
    rows,
    ...resolution
  }: {
    plan: ChangeRun
    rows: readonly number[]
    decision: Decision
    by: string
    why: string
  }): Promise<void> {
    try {
      const { ledger } = deps.state
      for (const row of rows) await resolveChange({ ledger, run: plan.run, row, ...resolution })
    } catch (error) {
      throw refusing(error)
    }
  }
}
