import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { type ImportPlan, runFiles } from '../imports/import-plan.ts'
import type { Decision } from '../imports/run-notes.ts'
import type { ActivityDeps } from './deps.ts'
import { refuseOther } from './open-export.ts'

/** Keeps what a person said to a run, for its report: durable before anything is done on the strength of it. */
export function createNoteDecision(deps: ActivityDeps) {
  return async function noteDecision({
    plan,
    decision,
  }: {
    plan: ImportPlan
    decision: Decision
  }): Promise<void> {
    refuseOther({ run: plan.identity, worker: deps.identity })
    const file = await open(join(deps.dataDir, plan.folder, runFiles.decisions), 'a')
    try {
      await file.writeFile(`${JSON.stringify(decision)}\n`)
      await file.sync()
    } finally {
      await file.close()
    }
  }
}
