import { join } from 'node:path'
import { toFileName } from '../storage/file-name.ts'
import type { SharedFolder } from '../storage/cached.ts'
import type { ExportPlan } from './plan.ts'

const runFolder = ({ dataDir, run }: { dataDir: string; run: string }) =>
  join(dataDir, 'parts', toFileName(run))
const planFile = (folder: string) => join(folder, 'plan.json')

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
  if (await place.shared.create(planFile(runFolder({ ...place, run })), JSON.stringify(plan))) return plan
  return (await loadPlan({ ...place, run })) ?? plan
}

/** Loads the plan; undefined if the parts are not kept. Steps find it through `knownRuns`. */
export const loadPlan = ({ shared, ...of }: Place & { run: string }): Promise<ExportPlan | undefined> =>
  planIn({ shared, folder: runFolder(of) })

/** The plan of the run whose parts are in a folder. */
export async function planIn({
  shared,
  folder,
}: {
  shared: SharedFolder
  folder: string
}): Promise<ExportPlan | undefined> {
  const text = await shared.read(planFile(folder))
  return text === undefined ? undefined : (JSON.parse(text) as ExportPlan)
}
