import { utimes } from 'node:fs/promises'
import { z } from 'zod'
import { latestCheckpoint } from './checkpoint.ts'
import { claimExports, ownerOf } from './claims.ts'
import type { ActivityDeps } from './deps.ts'
import { InvalidInput } from './errors.ts'
import { refuseMissing, type ExportPlan } from './export-plan.ts'
import { exportOf } from './known-run.ts'
import { kindsFor } from './notice.ts'
import { markPublishing, takeTurn } from './publish-note.ts'
import { type PublishAgain, publishAgainFields } from './publishing-input.ts'
import { partsFolder } from './run-folder.ts'

const publishAgainInput = z.strictObject({
  /** The export whose kept parts are published. */
  run: z.string().min(1),
  ...publishAgainFields,
})
export type PublishAgainInput = z.input<typeof publishAgainInput>

export interface OpenedPublish {
  plan: ExportPlan
  /** What each step is told of it beside the run's name. */
  again: PublishAgain
  checkpoints: { resource: ExportPlan['resources'][number]; checkpoint: string }[]
}

/** Finds what an earlier export has read to its end, and claims its resources and the destinations for this run. */
export function createOpenPublish(deps: ActivityDeps) {
  return async function openPublish(input: unknown): Promise<OpenedPublish> {
    const parsed = publishAgainInput.safeParse(input)
    if (!parsed.success) {
      throw new InvalidInput(
        'Publishing again takes {"run": "<an export>", "to": ["csv", ...], "maxDeletes": <a number or "all">,' +
          ' "schema": "<a plain name in lower case>"} and nothing else.',
      )
    }
    const { run, ...again } = parsed.data
    const kept = await exportOf(deps, run)
    if (kept === undefined)
      throw new InvalidInput(
        `The parts of a run ${run} are not kept (14 days, and the last 3 runs always). Export again.`,
      )
    // Whom to tell and what the server has are the worker's, as they are now.
    const served = { notifies: kindsFor(deps.receivers), marks: await deps.marks() }
    const plan = { ...kept, ...again, to: [...new Set(again.to ?? kept.to)], ...served }
    for (const name of plan.to) refuseMissing({ deps, name })
    const checkpoints = await takeTurn(deps.dataDir, () => reserve({ dataDir: deps.dataDir, plan }))
    if (checkpoints.length === 0) {
      throw new InvalidInput(`The run ${plan.run} has read no resource to its end. Export again.`)
    }
    const resources = checkpoints.map(({ resource }) => resource)
    const opened = { plan: { ...plan, resources }, again: { ...again, to: plan.to }, checkpoints }
    await claimExports({ deps, plan: opened.plan })
    return opened
  }
}

/** What was read to its end, noted as in use: no run may go on from it now, and none prune it. */
async function reserve({ dataDir, plan }: { dataDir: string; plan: ExportPlan }) {
  const found: OpenedPublish['checkpoints'] = []
  for (const resource of plan.resources) {
    const folder = partsFolder({ dataDir, run: plan.run, resource })
    const last = await latestCheckpoint(folder)
    if (last?.outcome === undefined) continue
    await markPublishing(folder, { execution: ownerOf(), asked: plan.to })
    found.push({ resource, checkpoint: last.name })
  }
  const now = new Date()
  // Parts are pruned by the age of the run's folder.
  if (found.length > 0) await utimes(partsFolder({ dataDir, run: plan.run, resource: '' }), now, now)
  return found
}
