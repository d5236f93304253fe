import { mkdir, mkdtemp, realpath, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import type { Identity } from '../runs/identity.ts'
import { insideFolder } from '../runs/inside-folder.ts'
import { type Execution, namesIn } from '../runs/name.ts'
import { readDecisions } from '../runs/run-files.ts'
import { replaceFile, syncPath } from '../storage/durable.ts'
import { toNonRetryable } from './errors.ts'
import { importLimits, importSettings, type ParsedImport } from './input.ts'
import { importKinds } from './kinds.ts'
import { leaseOf } from './restored-ledger.ts'
import { conventionsIn, type Mapping, readMapping, toMapping } from './mapping/mapping.ts'
import { type ImportPlan, runFiles, uploadPrefix } from './plan.ts'
import { readPlan } from './run-files.ts'
import { copyInput, fingerprintOf, type InputFiles, isCopyIntact } from './upload.ts'

interface Place {
  dataDir: string
  workflowId: string
}

/**
 * Copies the files of an import into the run's folder, and keeps the plan there. Starting the same rows,
 * read the same way, under the same workflow id resumes that run.
 *
 * @throws {InvalidInput} a file is outside the data folder, or does not exist
 * @throws {InvalidFile}
 */
export async function openImport(options: {
  deps: { dataDir: string; identity: Identity; settleMs: number }
  input: ParsedImport
  execution: Execution
  /** When the run was first started (ISO 8601). */
  startedAt: string
  takeLeases: (leases: readonly string[]) => Promise<void>
}): Promise<ImportPlan> {
  const { deps, input, execution, takeLeases } = options
  const { dataDir, identity } = deps
  const { kind, columns, sendAgain, dryRun } = input
  const place = { dataDir, workflowId: execution.workflowId }
  const available = await withKeptCopy({ ...place, input })
  const files = await findInput({ input: available, dataDir }).catch((error: unknown) => {
    throw toNonRetryable(error)
  })
  await mkdir(join(dataDir, 'imports'), { recursive: true })
  const fresh = await mkdtemp(join(dataDir, 'imports', '.incoming-'))
  try {
    const copied = await copyInput({ files, to: fresh })
    const { workspace, mode } = identity
    const reading = { kind, columns, sendAgain, workspace, mode }
    const fingerprint = await fingerprintOf({ folder: fresh, copied, ...reading })
    const named = await nameImport({ ...place, fingerprint, dryRun })
    await takeLeases([leaseOf(named.run)])
    const at = (name: string) => join(named.folder, runFiles.input, name)
    const paths = { file: at(copied.file), mapping: at(copied.mapping) }
    const plan = await toPlan({ ...options, ...named, ...paths, fingerprint })
    await keepInput({ dataDir, plan, fresh })
    await removeUpload({ dataDir, file: files.file })
    return plan
  } finally {
    await rm(fresh, { recursive: true, force: true })
  }
}

type Copied = Pick<ImportPlan, 'run' | 'folder' | 'file' | 'mapping' | 'fingerprint'>

/** The parsed input, with what the kind and the worker decide, and what was approved in the same run before. */
async function toPlan(options: Parameters<typeof openImport>[0] & Copied): Promise<ImportPlan> {
  const { deps, input, execution, startedAt, run, folder, file, mapping, fingerprint } = options
  const decisions = await readDecisions(join(deps.dataDir, folder))
  const before = await readPlan(join(deps.dataDir, folder))
  const { does, one, listed = false } = importKinds[input.kind]
  const limits = importLimits.parse(input)
  return {
    ...importSettings.parse(input),
    run,
    execution,
    folder,
    file,
    mapping,
    fingerprint,
    startedAt: before?.startedAt ?? startedAt,
    identity: deps.identity,
    kind: input.kind,
    does,
    resource: `${one}s`,
    listed,
    source: input.file,
    approval: input.approval || does === 'delete',
    confirmCanary: input.confirmCanary && does !== 'update',
    attended: input.attended || input.approval,
    verifyAfter: input.verifyAfter ?? deps.settleMs / 1_000,
    // A person decides on each of the rows that are resolved, however many failed before.
    limits: input.onlyResolved ? { ...limits, maxFailures: undefined } : limits,
    decided: {
      approval: decisions.some(({ about }) => about === 'approval'),
      canary: decisions.some(({ about }) => about === 'canary'),
    },
  }
}

/** Resolves the files of an input, all inside the data folder, and the mapping to read them with. */
async function findInput({ input, dataDir }: { input: ParsedImport; dataDir: string }): Promise<InputFiles> {
  const inside = (path: string) => insideFolder({ dataDir, path, command: 'import' })
  const base: Mapping = input.mapping === undefined ? {} : await readMapping(await inside(input.mapping))
  for (const path of Object.values(base.lookups ?? {})) await inside(path)
  const mapping = toMapping({ ...input, base })
  // Refuses an unknown locale before anything is copied.
  conventionsIn(mapping)
  return { kind: input.kind, columns: input.columns, file: await inside(input.file), mapping }
}

/**
 * Names the run after its workflow id. An id that a person chose may have been used before: for the same
 * rows, that run resumes; for others, the new one is called `<id>.2`.
 */
async function nameImport(options: {
  dataDir: string
  workflowId: string
  fingerprint: string
  dryRun: boolean
}) {
  for await (const place of namesIn({ ...options, room: 'imports' })) {
    const before = await readPlan(join(options.dataDir, place.folder))
    const isTheSame = before?.fingerprint === options.fingerprint && (before.dryRun || !options.dryRun)
    if (before === undefined || isTheSame) return place
  }
  throw new RangeError('no name is left for the run')
}

/** The plan that an earlier attempt to open this execution kept. */
export async function findKeptPlan(place: Place & { runId: string }): Promise<ImportPlan | undefined> {
  for await (const plan of plansOf(place)) if (plan.execution.runId === place.runId) return plan
  return undefined
}

/** Uses the run's own copy if the upload is gone, as after a Reset or a second start with the same input. */
async function withKeptCopy({ input, ...place }: Place & { input: ParsedImport }): Promise<ParsedImport> {
  if (!input.file.includes(uploadPrefix)) return input
  for await (const { source, file, mapping } of plansOf(place))
    if (source === input.file) return { ...input, file, mapping }
  return input
}

/** The plans under this workflow id. */
async function* plansOf({ dataDir, workflowId }: Place): AsyncGenerator<ImportPlan> {
  for await (const { folder } of namesIn({ dataDir, room: 'imports', workflowId })) {
    const plan = await readPlan(join(dataDir, folder))
    if (plan === undefined) return
    yield plan
  }
}

async function removeUpload({ dataDir, file }: { dataDir: string; file: string }): Promise<void> {
  const upload = dirname(dirname(file))
  const isOurs = basename(upload).startsWith(uploadPrefix) && basename(dirname(upload)) === 'imports'
  if (isOurs && relative(await realpath(dataDir), upload).startsWith('imports'))
    await rm(upload, { recursive: true, force: true })
}

/**
 * Moves the copy into the run's folder. A copy from an earlier start of the same run is kept unless damaged.
 */
async function keepInput({ dataDir, plan, fresh }: { dataDir: string; plan: ImportPlan; fresh: string }) {
  const folder = join(dataDir, plan.folder)
  await mkdir(folder, { recursive: true })
  const before = await readPlan(folder)
  if (before === undefined || !(await isCopyIntact({ plan: before, dataDir }))) {
    await rm(join(folder, runFiles.input), { recursive: true, force: true })
    await rename(fresh, join(folder, runFiles.input))
    await syncPath(dirname(folder))
  }
  await rm(join(folder, runFiles.ended), { force: true })
  await rm(join(folder, runFiles.shown), { force: true })
  await replaceFile(join(folder, runFiles.plan), JSON.stringify(plan))
}
