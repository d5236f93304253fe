import { createHash } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Identity } from '../runs/identity.ts'
import { insideFolder } from '../runs/inside-folder.ts'
import { type Execution, namesIn } from '../runs/name.ts'
import type { RunNotes } from '../runs/run-notes.ts'
import { replaceFile } from '../storage/durable.ts'
import { prepareInput, hashIn } from './stored-input.ts'
import {
  type ImportPlan,
  type ParsedImport,
  importLimits,
  importSettings,
  leaseOf,
  runFiles,
} from './input.ts'
import { type ImportKindName, importKinds } from './kinds.ts'
import { type Mapping, readingOf, readMapping, toMapping } from './mapping/mapping.ts'
import { readPlan } from './run-files.ts'

/**
 * Plans an import and keeps the plan in the run's folder. Starting the same rows, read the same way, under the same
 * workflow id resumes that run.
 *
 * @throws {InvalidInput} a file is outside the data folder, or does not exist
 * @throws {InvalidFile}
 */
export async function openImport(options: {
  deps: { dataDir: string; identity: Identity; settleMs: number; notes: RunNotes }
  input: ParsedImport
  execution: Execution
  /** When the run was first started (ISO 8601). */
  startedAt: string
  takeLeases: (leases: readonly string[]) => Promise<void>
}): Promise<ImportPlan> {
  const { deps, input, execution, takeLeases } = options
  const { dataDir, identity } = deps
  const { dryRun } = input
  const { hash, ...stored } = await storeInput({ dataDir, input })
  const fingerprint = fingerprintOf({ ...input, ...identity, hash })
  const named = await nameImport({ dataDir, workflowId: execution.workflowId, fingerprint, dryRun })
  await takeLeases([leaseOf(named.run)])
  const plan = await toPlan({ ...options, ...named, ...stored, fingerprint })
  const folder = join(dataDir, plan.folder)
  for (const name of [runFiles.ended, runFiles.shown]) await rm(join(folder, name), { force: true })
  await replaceFile(join(folder, runFiles.plan), JSON.stringify(plan))
  return plan
}

/** The input as it is stored. One that a command has stored has its mapping, and is not copied again. */
async function storeInput({ dataDir, input }: { dataDir: string; input: ParsedImport }) {
  const { kind, columns, file, mapping } = input
  const inside = (path: string) => insideFolder({ dataDir, path, command: 'import' })
  const path = await inside(file)
  const base: Mapping = mapping === undefined ? {} : await readMapping(await inside(mapping))
  for (const lookup of Object.values(base.lookups ?? {})) await inside(lookup)
  const hash = hashIn({ file, mapping })
  if (hash !== undefined && mapping !== undefined && Object.keys(readingOf(input)).length === 0)
    return { hash, file, mapping }
  await using prepared = await prepareInput({
    dataDir,
    files: { kind, columns, file: path, mapping: toMapping({ ...input, base }) },
  })
  return { hash: prepared.hash, ...(await prepared.keep()) }
}

/** Equal only for the same rows read the same way: such an import resumes instead of starting over. */
export function fingerprintOf(of: {
  hash: string
  kind: ImportKindName
  workspace: string
  mode: 'live' | 'test'
  columns?: readonly string[] | undefined
  sendAgain?: readonly number[] | undefined
}): string {
  const { hash, kind, workspace, mode, columns, sendAgain = [] } = of
  const reading = JSON.stringify({ hash, kind, workspace, mode, columns, sendAgain })
  return createHash('sha256').update(reading).digest('hex').slice(0, 32)
}

type Copied = Pick<ImportPlan, 'run' | 'folder' | 'file' | 'mapping' | 'fingerprint'>

/** The parsed input, with what the kind and the worker decide, and what was approved in the same run before. */
async function toPlan(options: Parameters<typeof openImport>[0] & Copied): Promise<ImportPlan> {
  const { deps, input, execution, startedAt, run, folder, file, mapping, fingerprint } = options
  const { decisions } = await deps.notes.read(run)
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
export async function findKeptPlan(of: {
  dataDir: string
  workflowId: string
  runId: string
}): Promise<ImportPlan | undefined> {
  for await (const { folder } of namesIn({ ...of, room: 'imports' })) {
    const plan = await readPlan(join(of.dataDir, folder))
    if (plan === undefined || plan.execution.runId === of.runId) return plan
  }
  return undefined
}
