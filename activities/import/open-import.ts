import { customers } from '../../core/billing/resources/customers.ts'
import { join, relative } from 'node:path'
import { filesOf } from '../../core/imports/stored-input.ts'
import { type ImportPlan, type ParsedImport, parseImportInput } from '../../core/imports/input.ts'
import { type Mapping, readMapping } from '../../core/imports/mapping/mapping.ts'
import { findKeptPlan, openImport } from '../../core/imports/open.ts'
import type { StepFolder } from '../../core/runs/step-folder.ts'
import { type Opened, toOpened } from '../../core/notifications/opened.ts'
import { refuseOther } from '../../core/runs/identity.ts'
import { fetchNames } from '../fetch-names.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'

/** Fetches the files that an input names. */
async function fetchNamed(folder: StepFolder, { file, mapping }: ParsedImport): Promise<void> {
  for (const path of [file, mapping]) if (path !== undefined) await folder.fetchFile(path)
  if (mapping === undefined) return
  // Read again, and checked, when the import is opened.
  const { lookups = {} } = await readMapping(join(folder.dataDir, mapping)).catch((): Mapping => ({}))
  for (const path of Object.values(lookups)) await folder.fetchFile(relative(folder.dataDir, path))
}

/** Plans an import; see `openImport`. An execution that already has a plan keeps it. */
export function createOpenImport(deps: ActivityDeps) {
  return async (context: StepContext, request: unknown): Promise<Opened<ImportPlan>> => {
    const { owner: execution, scheduledAt: startedAt, signal, takeLeases, folder, notes, watch } = context
    const { dataDir } = folder
    await fetchNames({ folder, room: 'imports', workflowId: execution.workflowId })
    const kept = await findKeptPlan({ dataDir, ...execution })
    if (kept !== undefined) return await toOpened(deps, kept)
    const input = parseImportInput(request)
    if (input.identity !== undefined) refuseOther({ run: input.identity, worker: deps.identity })
    // Try once and let Temporal retry: its UI shows the failure, which retries in here would hide for minutes.
    await watch(deps.billing).list({ resource: customers, page: 1, pageSize: 1, tries: 1, signal })
    await fetchNamed(folder, input)
    const inFolder = { ...deps, dataDir, notes }
    const plan = await openImport({ deps: inFolder, input, execution, startedAt, takeLeases })
    // One that a command has stored is there already.
    if (deps.shared.isShared && plan.file !== input.file)
      for (const path of await filesOf({ dataDir, ...plan })) await deps.files?.put(path, join(dataDir, path))
    return await toOpened(deps, plan)
  }
}
