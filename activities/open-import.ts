import { cancellationSignal } from '@temporalio/activity'
import { mkdir, mkdtemp, realpath, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { customers } from '../billing/resources/customers.ts'
import { replaceFile, syncFolder } from '../destinations/durable.ts'
import { copyInput, fingerprintOf } from '../imports/copy-input.ts'
import { handedIn, type ImportPlan, runFiles } from '../imports/import-plan.ts'
import { isOwnCopyWhole } from '../imports/own-copy.ts'
import { readPlan } from '../imports/run-notes.ts'
import { claim, ownerOf } from './claims.ts'
import type { ActivityDeps } from './deps.ts'
import { findInput } from './find-input.ts'
import { refusing } from './import-errors.ts'
import { type AskedImport, parseImportInput } from './import-input.ts'
import { refuseOther } from './export-plan.ts'
import type { MarkName } from './marks.ts'
import { namesIn } from './run-name.ts'
import { kindsFor, type NoticeKind } from './notice.ts'
import { toImportPlan } from './to-import-plan.ts'

/** What an import does, and what the worker's receivers want to hear of it (NOTIFY_URL). */
export type OpenedImport = ImportPlan & { notifies?: NoticeKind[]; marks?: MarkName[] }

/**
 * Settles what an import does: checks its input, copies the file and all it needs into the run's folder, and finds
 * out whether this is a run that was begun before and goes on.
 */
export function createOpenImport(deps: ActivityDeps) {
  return async function openImport(input: unknown): Promise<OpenedImport> {
    const served = { notifies: kindsFor(deps.receivers), marks: await deps.marks() }
    const settled = await findSettled(deps)
    if (settled !== undefined) return { ...settled, ...served }
    const asked = parseImportInput(input)
    if (asked.identity !== undefined) refuseOther({ run: asked.identity, worker: deps.identity })
    // Temporal tries again, and shows meanwhile why: the client's own patience would hide it for minutes.
    await deps.billing.list({
      resource: customers,
      page: 1,
      pageSize: 1,
      tries: 1,
      signal: cancellationSignal(),
    })
    const inHand = await withOwnCopy({ asked, dataDir: deps.dataDir })
    const files = await findInput({ asked: inHand, dataDir: deps.dataDir }).catch((error: unknown) => {
      throw refusing(error)
    })
    await mkdir(join(deps.dataDir, 'imports'), { recursive: true })
    const fresh = await mkdtemp(join(deps.dataDir, 'imports', '.incoming-'))
    try {
      const copied = await copyInput({ files, to: fresh })
      const { workspace, mode } = deps.identity
      const { kind, columns, sendAgain = [] } = asked
      const what = { kind, columns, sendAgain, workspace, mode }
      const fingerprint = await fingerprintOf({ folder: fresh, copied, ...what })
      const { dryRun = false } = asked
      const { run, folder } = await nameImport({ dataDir: deps.dataDir, fingerprint, dryRun })
      await claim({ deps, what: `import ${run}` })
      const source = asked.file
      const plan = await toImportPlan({ deps, asked, copied, run, folder, fingerprint, source })
      await keepInput({ deps, plan, fresh })
      await removeHandedIn({ dataDir: deps.dataDir, file: files.file })
      return { ...plan, ...served }
    } finally {
      await rm(fresh, { recursive: true, force: true })
    }
  }
}

/**
 * The name of a run: its workflow id. An id that someone types may have been used before: for the same rows the
 * run goes on, for others a second one is called `<id>.2`.
 */
async function nameImport(options: { dataDir: string; fingerprint: string; dryRun: boolean }) {
  for await (const place of namesHere(options.dataDir)) {
    const before = await readPlan(join(options.dataDir, place.folder))
    const isTheSame = before?.fingerprint === options.fingerprint && (before.dryRun || !options.dryRun)
    if (before === undefined || isTheSame) return place
  }
  throw new RangeError('the names of a run have an end')
}

const namesHere = (dataDir: string) => namesIn({ dataDir, room: 'imports', workflowId: ownerOf().workflowId })

/** What an earlier try of this very activity has settled. */
async function findSettled({ dataDir }: ActivityDeps): Promise<ImportPlan | undefined> {
  const { runId } = ownerOf()
  for await (const plan of plansOf(dataDir)) if (plan.execution.runId === runId) return plan
  return undefined
}

/** After a Reset, or a second start with the same input, what was handed in is gone, and the run has it. */
async function withOwnCopy({
  asked,
  dataDir,
}: {
  asked: AskedImport
  dataDir: string
}): Promise<AskedImport> {
  if (!asked.file.includes(handedIn)) return asked
  for await (const { source, file, lines, mapping } of plansOf(dataDir))
    if (source === asked.file) return { ...asked, file, mapping, ...(lines !== undefined && { lines }) }
  return asked
}

/** What was settled under this workflow id before. */
async function* plansOf(dataDir: string): AsyncGenerator<ImportPlan> {
  for await (const { folder } of namesHere(dataDir)) {
    const plan = await readPlan(join(dataDir, folder))
    if (plan === undefined) return
    yield plan
  }
}

async function removeHandedIn({ dataDir, file }: { dataDir: string; file: string }): Promise<void> {
  const folder = dirname(file)
  const isOurs = basename(folder).startsWith(handedIn) && basename(dirname(folder)) === 'imports'
  if (isOurs && relative(await realpath(dataDir), folder).startsWith('imports'))
    await rm(folder, { recursive: true, force: true })
}

/**
 * The copy becomes the run's own. What an earlier start of the same run copied is the same, and stays, unless it was
 * damaged since.
 */
async function keepInput({ deps, plan, fresh }: { deps: ActivityDeps; plan: ImportPlan; fresh: string }) {
  const folder = join(deps.dataDir, plan.folder)
  await mkdir(folder, { recursive: true })
  const before = await readPlan(folder)
  if (before === undefined || !(await isOwnCopyWhole({ plan: before, dataDir: deps.dataDir }))) {
    await rm(join(folder, runFiles.input), { recursive: true, force: true })
    await rename(fresh, join(folder, runFiles.input))
    await syncFolder(dirname(folder))
  }
  await rm(join(folder, runFiles.ended), { force: true })
  await rm(join(folder, runFiles.shown), { force: true })
  await replaceFile(join(folder, runFiles.plan), JSON.stringify(plan))
}
