import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { type ChangeRun, changeRunFiles, type Decision } from '../../core/runs/run-files.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'

/** Records a person's decision for the report, durably, before it takes effect. */
export function createNoteDecision(deps: ActivityDeps) {
  return async function noteDecision(
    _: StepContext,
    input: { plan: ChangeRun; decision: Decision },
  ): Promise<void> {
    const { plan, decision } = input
    const file = await open(join(deps.dataDir, plan.folder, changeRunFiles.decisions), 'a')
    try {
      await file.writeFile(`${JSON.stringify(decision)}\n`)
      await file.sync()
    } finally {
      await file.close()
    }
  }
}
