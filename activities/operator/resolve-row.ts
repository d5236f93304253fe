import { type Decision, resolveChange } from '../../core/changes/reconcile/resolve.ts'
import type { ChangeRun } from '../../core/runs/run-files.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'
import { toNonRetryable } from '../../core/imports/errors.ts'

interface ResolveInput {
  plan: ChangeRun
  rows: readonly number[]
  decision: Decision
  by: string
  why: string
}

/** Applies a person's decision to parked rows. Safe to retry. */
export function createResolveRow(deps: ActivityDeps) {
  return async function resolveRow(_: StepContext, input: ResolveInput): Promise<void> {
    const { plan, rows, ...resolution } = input
    try {
      const { ledger } = deps.state
      for (const row of rows) await resolveChange({ ledger, run: plan.run, row, ...resolution })
    } catch (error) {
      throw toNonRetryable(error)
    }
  }
}
