import { ApplicationFailure } from '@temporalio/common'
import { type Decision as Resolved, refuseRestored, resolveChange } from '../../core/changes/resolve.ts'
import { outwardMessage } from '../../core/runs/errors.ts'
import type { Decision } from '../../core/runs/run-notes.ts'
import { isFinal, type StepContext } from '../step.ts'
import type { WritePlan } from '../deps.ts'
import type { WriteDeps } from './job.ts'

interface ResolveInput {
  plan: WritePlan
  /** The update's id, which a Reset keeps. */
  id: string
  rows: readonly number[]
  decision: Resolved
  by: string
  why: string
}

/** The details of a failure: the rows that were resolved before it. */
export interface PartlyResolved {
  resolved: number[]
}

/** Records a person's decision for the report, durably, before it takes effect. */
export async function noteDecision(
  { notes }: StepContext,
  { plan, decision }: { plan: WritePlan; decision: Decision },
): Promise<void> {
  await notes.addDecisions(plan.run, [decision])
}

/**
 * Applies a person's decision to rows and records it for the report, alongside any earlier one. Returns what the
 * service returns for the id that the person gave. Safe to retry, also by a Reset: a decision is never applied to a row that
 * was sent or decided on since.
 */
export function createResolveRow({ deps, rates }: Pick<WriteDeps, 'deps' | 'rates'>) {
  return async function resolveRow(
    { signal, notes }: StepContext,
    input: ResolveInput,
  ): Promise<string | undefined> {
    const { plan, id, rows, ...resolution } = input
    const { run } = plan
    const { decision, by, why } = resolution
    const { ledger } = deps.state
    const billing = rates.ofRun({ run })
    const decisions: Decision[] = []
    const changes = await Promise.all(rows.map((row) => ledger.row({ run, row })))
    const noted = await notes.addFound(run, { id, rows: changes.flatMap((change) => change ?? []) })
    try {
      await refuseRestored({ ledger, run, decision }, rows, noted)
      for (const row of rows) {
        const found = noted.get(row)
        const confirmation = await resolveChange({ ledger, billing, run, row, found, signal, ...resolution })
        const at = new Date().toISOString()
        decisions.push({
          at,
          about: 'row',
          row,
          ...decision,
          ...(confirmation && { confirmed: confirmation.confirmed }),
          by,
          why,
        })
        if (confirmation?.confirmed === true) return 'the service has it under this id'
        if (confirmation !== undefined) return `not confirmed: ${confirmation.reason}`
      }
    } catch (error) {
      if (!isFinal(error)) throw error
      const partly: PartlyResolved = { resolved: decisions.flatMap(({ row = [] }) => row) }
      throw ApplicationFailure.nonRetryable(outwardMessage(error), error.name, partly)
    } finally {
      await notes.addDecisions(run, decisions)
    }
    return undefined
  }
}
