import { z } from 'zod'
import { latestCheckpoint } from './checkpoint.ts'
import { claimExports } from './claims.ts'
import type { ActivityDeps } from './deps.ts'
import { InvalidInput } from './errors.ts'
import {
  destinationNames,
  maxDeletesInput,
  refuseMissing,
  refuseOther,
  type ExportPlan,
} from './open-export.ts'
import { partsFolder } from './run-folder.ts'
import { loadPlan } from './saved-plan.ts'

const publishAgainInput = z.strictObject({
  /** The export whose kept parts are published. */
  run: z.string().min(1),
  to: z.array(z.enum(destinationNames)).min(1).optional(),
  /** As in `exportData`; without it what the export was given. */
  maxDeletes: maxDeletesInput.optional(),
})
export type PublishAgainInput = z.input<typeof publishAgainInput>

export interface OpenedPublish {
  plan: ExportPlan
  checkpoints: { resource: ExportPlan['resources'][number]; checkpoint: string }[]
}

/** Finds what an earlier export has read to its end, and claims its resources and the destinations for this run. */
export function createOpenPublish(deps: ActivityDeps) {
  return async function openPublish(input: unknown): Promise<OpenedPublish> {
    const parsed = publishAgainInput.safeParse(input)
    if (!parsed.success) {
      throw new InvalidInput(
        'Publishing again takes {"run": "<an export>", "to": ["csv", ...], "maxDeletes": <a number or "all">} and' +
          ' nothing else.',
      )
    }
    const kept = await loadPlan({ dataDir: deps.dataDir, run: parsed.data.run })
    refuseOther({ run: kept.identity, worker: deps.identity })
    const { to = kept.to, maxDeletes = kept.maxDeletes } = parsed.data
    const plan = { ...kept, to: [...new Set(to)], maxDeletes }
    for (const name of plan.to) refuseMissing({ deps, name })
    const found = await Promise.all(
      plan.resources.map(async (resource) => {
        const last = await latestCheckpoint(partsFolder({ dataDir: deps.dataDir, run: plan.run, resource }))
        return last?.outcome === undefined ? [] : [{ resource, checkpoint: last.name }]
      }),
    )
    const checkpoints = found.flat()
    if (checkpoints.length === 0) {
      throw new InvalidInput(`The run ${plan.run} has read no resource to its end. Export again.`)
    }
    const opened = { plan: { ...plan, resources: checkpoints.map(({ resource }) => resource) }, checkpoints }
    await claimExports({ deps, plan: opened.plan })
    return opened
  }
}
