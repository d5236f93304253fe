import { join } from 'node:path'
import { type ChangeRun, type Decision, recordDecisions } from '../../core/runs/run-files.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'

/** Records a person's decision for the report, durably, before it takes effect. */
export function createNoteDecision({ dataDir }: ActivityDeps) {
  return async function noteDecision(
    _: StepContext,
    { plan, decision }: { plan: ChangeRun; decision: Decision },
  ): Promise<void> {
    await recordDecisions(join(dataDir, plan.folder), [decision])
  }
}
