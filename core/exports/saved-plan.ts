import { join } from 'node:path'
import { readNote } from '../runs/run-files.ts'
import { replaceFile } from '../storage/durable.ts'
import { toFileName } from '../storage/file-name.ts'
import type { ExportPlan } from './plan.ts'

const planFile = ({ dataDir, run }: { dataDir: string; run: string }) =>
  join(dataDir, 'parts', toFileName(run), 'plan.json')

/** Saves the plan beside the parts, so that the parts can be published again. */
export async function savePlan({ dataDir, plan }: { dataDir: string; plan: ExportPlan }): Promise<void> {
  await replaceFile(planFile({ dataDir, run: plan.run }), JSON.stringify(plan))
}

/** Loads the plan; undefined if the parts are not kept. Steps find it through `knownRuns`. */
export const loadPlan = (options: { dataDir: string; run: string }): Promise<ExportPlan | undefined> =>
  readNote<ExportPlan>(planFile(options))
