import { join, relative } from 'node:path'
import { z } from 'zod'
import type { ChangeRun } from '../changes/run-notes.ts'
import { allowedRoot } from '../destinations/allowed-root.ts'
import { toFileName } from '../destinations/export-folder.ts'
import { resolveInside } from '../destinations/inside.ts'
import type { ImportPlan } from '../imports/import-plan.ts'
import { readPlan } from '../imports/run-notes.ts'
import type { RecoveryPlan } from '../recoveries/recovery-plan.ts'
import { readSavedPlan } from '../recoveries/run-notes.ts'
import type { Identity } from '../state/identity.ts'
import { identityInput } from '../state/identity-input.ts'
import type { ActivityDeps } from './deps.ts'
import { InvalidInput } from './errors.ts'
import { type ExportPlan, refuseOther } from './export-plan.ts'
import { publishAgainFields } from './publishing-input.ts'
import { loadPlan } from './saved-plan.ts'

/** How a step is told which run it belongs to. All else it knows of the run, it reads from the run's own folder. */
export interface RunRef {
  run: string
  /** Whom the run acts on: a worker that serves another, or has another data folder, refuses it. */
  identity: Identity
}

const runRef = z.object({ run: z.string().min(1).max(2_000), identity: identityInput.unwrap() })

type Deps = Pick<ActivityDeps, 'dataDir' | 'outDirs' | 'identity'>
type Room = 'imports' | 'recoveries' | 'parts'
type Step<Input, Result> = (input: Input) => Promise<Result>
/** The input of a registered step: the run's name in the place of its plan. */
export type Named<Input> = Omit<Input, 'plan'> & RunRef

/**
 * The one place where a step finds its run. Whoever reaches Temporal can call any step with any input, so no path of
 * an input is ever followed: the name leads to a folder of the data folder, links resolved, and the plan that lies
 * there is what the step gets.
 */
export function knownRuns(deps: Deps) {
  const withPlan =
    <Plan>(load: (ref: RunRef, input: object) => Promise<Plan | undefined>) =>
    <Input extends { plan: Plan }, Result>(step: Step<Input, Result>): Step<Named<Input>, Result> =>
    async (input) => {
      const ref = parse(runRef, input)
      refuseOther({ run: ref.identity, worker: deps.identity })
      const plan = await load(ref, input)
      if (plan === undefined) throw unknownRun(ref.run)
      return await step({ ...input, plan } as unknown as Input)
    }
  return {
    ofImport: withPlan<ImportPlan>(({ run }) => importOf(deps, run)),
    ofRecovery: withPlan<RecoveryPlan>(({ run }) => recoveryOf(deps, run)),
    /** Of either: no two of them have the same name. */
    ofChanges: withPlan<ChangeRun>(
      async ({ run }) => (await importOf(deps, run)) ?? (await recoveryOf(deps, run)),
    ),
    ofExport: withPlan<ExportPlan>(({ run }, input) => exportStepOf({ deps, run, input })),
  }
}

/** The folder of a run, and undefined where a link leads elsewhere; it may not exist. */
async function folderOf(
  place: Pick<Deps, 'dataDir'> & { room: Room; run: string },
): Promise<string | undefined> {
  const { dataDir, room, run } = place
  const root = join(dataDir, room)
  const path = join(root, toFileName(run))
  return (await resolveInside({ root, path })) === undefined ? undefined : path
}

async function importOf({ dataDir, identity }: Deps, run: string): Promise<ImportPlan | undefined> {
  const folder = await folderOf({ dataDir, room: 'imports', run })
  const plan = folder === undefined ? undefined : await readPlan(folder)
  if (folder === undefined || plan?.run !== run || plan.folder !== relative(dataDir, folder)) return undefined
  for (const path of [plan.file, plan.mapping, plan.lines ?? plan.file])
    if ((await resolveInside({ root: folder, path: join(dataDir, path) })) === undefined) return undefined
  refuseOther({ run: plan.identity, worker: identity })
  return plan
}

async function recoveryOf({ dataDir, identity }: Deps, run: string): Promise<RecoveryPlan | undefined> {
  const folder = await folderOf({ dataDir, room: 'recoveries', run })
  const saved = folder === undefined ? undefined : await readSavedPlan(folder)
  if (folder === undefined || saved?.plan.run !== run) return undefined
  if (saved.plan.folder !== relative(dataDir, folder)) return undefined
  refuseOther({ run: saved.plan.identity, worker: identity })
  return saved.plan
}

/** The plan of an export or a fetch; undefined if its parts are not kept. */
export async function exportOf(deps: Deps, run: string): Promise<ExportPlan | undefined> {
  const { dataDir, identity } = deps
  const folder = await folderOf({ dataDir, room: 'parts', run })
  const plan = folder === undefined ? undefined : await loadPlan({ dataDir, run })
  if (folder === undefined || plan?.run !== run) return undefined
  refuseOther({ run: plan.identity, worker: identity })
  if (plan.out !== undefined) await allowedRoot({ ...deps, out: plan.out })
  for (const resource of plan.resources)
    if ((await resolveInside({ root: folder, path: join(folder, resource) })) === undefined) return undefined
  return plan
}

/** What the input of a step of an export may say beside the run's name. */
const exportStep = z.object({
  resource: z.string().optional(),
  /** Parts are published again, elsewhere or with other bounds than the export was given. */
  again: z.object(publishAgainFields).optional(),
})

async function exportStepOf({ deps, run, input }: { deps: Deps; run: string; input: object }) {
  const plan = await exportOf(deps, run)
  if (plan === undefined) return undefined
  const { resource, again } = parse(exportStep, input)
  if (resource !== undefined && !plan.resources.some((one) => one === resource))
    throw new InvalidInput(`resource: the run ${run} has no ${JSON.stringify(resource)}.`)
  return { ...plan, ...again, to: again?.to ?? plan.to }
}

function parse<S extends z.ZodType>(schema: S, input: unknown): z.output<S> {
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'input'}: ${message}`)
  throw new InvalidInput(`A step takes the name and the identity of its run: ${problems.join('; ')}.`)
}

const unknownRun = (run: string) =>
  new InvalidInput(
    `There is no run ${JSON.stringify(run)} in the data folder of this worker: it was removed, or never began.`,
  )
