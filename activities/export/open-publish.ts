import { findExport } from '../../core/exports/find-run.ts'
import { type PublishAgain, publishAgainInput } from '../../core/exports/input.ts'
import { type ExportPlan, leasesOf, refuseMissing } from '../../core/exports/plan.ts'
import { type KeptRead, reserveParts } from '../../core/exports/parts/read-folder.ts'
import { type Opened, toOpened } from '../../core/notifications/opened.ts'
import { InvalidInput } from '../../core/runs/errors.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'

interface OpenedPublish {
  plan: Opened<ExportPlan>
  /** Part of every step's input, besides the run's name. */
  again: PublishAgain
  checkpoints: KeptRead[]
}

/** Finds the completed reads of an earlier export and takes the leases of their resources and destinations. */
export function createOpenPublish(deps: ActivityDeps) {
  return async function openPublish({ takeLeases }: StepContext, input: unknown): Promise<OpenedPublish> {
    const parsed = publishAgainInput.safeParse(input)
    if (!parsed.success) {
      throw new InvalidInput(
        'Publishing again takes {"run": "<an export>", "to": ["csv", ...], "maxDeletes": <a number or "all">,' +
          ' "schema": "<a plain name in lower case>"} and nothing else.',
      )
    }
    const { run, ...again } = parsed.data
    const kept = await findExport(deps, run)
    if (kept === undefined)
      throw new InvalidInput(
        `The parts of run ${run} are no longer kept (14 days, and always the last 3 runs). Export again.`,
      )
    const plan = { ...kept, ...again, to: [...new Set(again.to ?? kept.to)] }
    for (const name of plan.to) refuseMissing({ ...deps, name })
    const checkpoints = await reserveParts({ ...deps, plan })
    if (checkpoints.length === 0)
      throw new InvalidInput(`The run ${plan.run} did not finish reading any resource. Export again.`)
    plan.resources = checkpoints.map(({ resource }) => resource)
    const opened = await toOpened(deps, plan)
    await takeLeases(leasesOf(plan))
    return { plan: opened, again: { ...again, to: plan.to }, checkpoints }
  }
}
