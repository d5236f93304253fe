import type { ChangeRun, Decision } from '../../core/runs/run-notes.ts'
import type { StepContext } from '../step.ts'

/** Records a person's decision for the report, durably, before it takes effect. */
export function createNoteDecision() {
  return async function noteDecision(
    { notes }: StepContext,
    { plan, decision }: { plan: ChangeRun; decision: Decision },
  ): Promise<void> {
    await notes.addDecisions(plan.run, [decision])
  }
}
