import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../storage/durable.ts'
import { toFileName } from '../storage/file-name.ts'
import { InvalidInput } from '../runs/errors.ts'
import type { ExportPlan } from './plan.ts'

const planFile = ({ dataDir, run }: { dataDir: string; run: string }) =>
  join(dataDir, 'parts', toFileName(run), 'plan.json')

/** Keeps beside the parts what they were read for, so that they can be published again. */
export async function savePlan({ dataDir, plan }: { dataDir: string; plan: ExportPlan }): Promise<void> {
  await replaceFile(planFile({ dataDir, run: plan.run }), JSON.stringify(plan))
}

export async function loadPlan(options: { dataDir: string; run: string }): Promise<ExportPlan> {
  const text = await readFile(planFile(options), 'utf8').catch((cause: unknown) => {
    throw new InvalidInput(
      `The parts of a run ${options.run} are not kept (14 days, and the last 3 runs always). Export again.`,
      { cause },
    )
  })
  return JSON.parse(text) as ExportPlan
}
