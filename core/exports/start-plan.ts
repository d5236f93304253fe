import type { ResourceName } from '../billing/resources/lists.ts'
import { allowedRoot } from '../storage/inside.ts'
import type { Destination } from '../destinations/destination.ts'
import { type Identity, refuseOther } from '../runs/identity.ts'
import type { FileStore } from '../storage/file-store.ts'
import type { PublishingInput } from './input.ts'
import { refuseMissing, type ExportPlan } from './plan.ts'
import { refuseUnpublishable } from './privacy-fingerprint.ts'
import { type Execution, nameRun } from '../runs/name.ts'
import type { State } from '../state/open.ts'
import type { PublishedState } from '../state/publications.ts'
import { toFileName } from '../storage/file-name.ts'
import type { SharedFolder } from '../storage/cached.ts'
import { foldersReported } from './report.ts'

interface Deps {
  dataDir: string
  shared: SharedFolder
  state: PublishedState & Pick<State, 'now'>
  outDirs: readonly string[]
  identity: Identity
  hashKey: string
  destinations: ReadonlyMap<string, Destination>
  files?: FileStore | undefined
}

/** Builds the part of a run's plan that follows from its input, before the service is contacted. */
export async function startPlan(options: {
  deps: Deps
  asked: PublishingInput
  resources: ResourceName[]
  execution: Execution
  startedAt: string
}): Promise<ExportPlan> {
  const { deps, asked, resources, execution, startedAt } = options
  const { identity, to = ['csv'], exclude = [], hash = [], out } = asked
  if (identity !== undefined) refuseOther({ run: identity, worker: deps.identity })
  for (const name of to) refuseMissing({ ...deps, name })
  const plan: ExportPlan = {
    run: await nameExport({ ...deps, execution }),
    startedAt,
    servedAt: undefined,
    identity: deps.identity,
    resources,
    to: [...new Set(to)],
    since: {},
    schema: asked.schema,
    filters: {},
    exclude,
    hash,
    forExcel: asked.forExcel ?? false,
    requestsPerSecond: asked.requestsPerSecond,
    out: out === undefined ? undefined : await allowedRoot({ ...deps, out }),
    files: out === undefined ? deps.files?.locate('') : undefined,
  }
  await refuseUnpublishable({ ...deps, plan })
  return plan
}

/**
 * Names an export or a fetch. A name stays taken after its parts are pruned, because the report and the published
 * data outlive them.
 */
export async function nameExport(of: {
  dataDir: string
  shared: SharedFolder
  state: PublishedState
  execution: Execution
}): Promise<string> {
  const published = new Set((await of.state.publications.all()).map(({ run }) => toFileName(run)))
  const taken = published.union(await foldersReported(of))
  return await nameRun({ ...of, taken })
}
