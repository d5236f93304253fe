import { join } from 'node:path'
import { toFileName } from '../storage/file-name.ts'
import type { SharedFolder } from '../storage/cached.ts'
import type { ExportPlan } from './plan.ts'

const planFile = ({ dataDir, run }: { dataDir: string; run: string }) =>
  join(dataDir, 'parts', toFileName(run), 'plan.json')

interface Place {
  dataDir: string
  shared: SharedFolder
}

/**
 * Saves the plan beside the parts, so that every step finds it and the parts can be published again. The first attempt
 * to open a run decides: returns the plan that counts.
 */
export async function savePlan({ plan, ...place }: Place & { plan: ExportPlan }): Promise<ExportPlan> {
  const { run } = plan
  if (await place.shared.create(planFile({ ...place, run }), JSON.stringify(plan))) return plan
  return (await loadPlan({ ...place, run })) ?? plan
}

/** Loads the plan; undefined if the parts are not kept. Steps find it through `knownRuns`. */
export async function loadPlan(options: Place & { run: string }): Promise<ExportPlan | undefined> {
  const text = await options.shared.read(planFile(options))
  return text === undefined ? undefined : (JSON.parse(text) as ExportPlan)
}
