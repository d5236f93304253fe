import { join } from 'node:path'
import { type ChangeRun, type Decision, recordDecisions } from '../../core/runs/run-files.ts'
import type { StepContext } from '../step.ts'

/** Records a person's decision for the report, durably, before it takes effect. */
export function createNoteDecision() {
  return async function noteDecision(
    { folder }: StepContext,
    { plan, decision }: { plan: ChangeRun; decision: Decision },
  ): Promise<void> {
    await recordDecisions(join(folder.dataDir, plan.folder), [decision])
  }
}
