import { createHash } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { refuseForgotten } from '../changes/staged-changes.ts'
import type { Identity } from '../runs/identity.ts'
import { insideFolder } from '../runs/known-run.ts'
import type { Execution } from '../runs/name.ts'
import type { Noted, RunNotes } from '../runs/run-notes.ts'
import type { SharedFolder } from '../storage/cached.ts'
import { toFileName } from '../storage/file-name.ts'
import { hashIn, prepareInput, shareInput, type StoredInput } from './stored-input.ts'
import { type ImportPlan, type ParsedImport, importLimits, importSettings, leaseOf } from './input.ts'
import { type ImportKindName, importKinds } from './kinds.ts'
import { type Mapping, readingOf, readMapping, toMapping } from './mapping/mapping.ts'
import type { ImportNotes } from './run-files.ts'

/**
 * Plans an import and notes the plan. Starting the same rows, read the same way, under the same workflow id resumes that
 * run.
 *
 * @throws {InvalidInput} a file is outside the data folder, or does not exist
 * @throws {InvalidFile}
 * @throws {OldLedgerError} the name is that of a run that the state has forgotten
 */
export async function openImport(options: {
  deps: {
    dataDir: string
    shared: SharedFolder
    identity: Identity
    settleMs: number
    notes: RunNotes
  }
  input: ParsedImport
  execution: Execution
  /** When the run was first started (ISO 8601). */
  startedAt: string
  takeLeases: (leases: readonly string[]) => Promise<void>
}): Promise<ImportPlan> {
  const { deps, input, execution, takeLeases } = options
  const { dataDir, identity, notes } = deps
  const { hash, ...stored } = await storeInput(deps, input)
  const fingerprint = fingerprintOf({ ...input, ...identity, hash })
  // The same rows resume their run, except that a dry run is not a real one.
  const { run, noted } = await notes.name<ImportNotes>(
    execution.workflowId,
    (plan) => plan.job === 'import' && plan.fingerprint === fingerprint && (plan.dryRun || !input.dryRun),
  )
  // Else a repair would give this plan the staged changes of another file.
  if (noted.plan === undefined) await refuseForgotten(deps, run)
  await takeLeases([leaseOf(run)])
  const plan = toPlan({ ...options, ...stored, run, noted, fingerprint })
  await mkdir(join(dataDir, plan.folder), { recursive: true })
  // Rows may be sent that the audit has not seen.
  await notes.write(run, { plan, ended: null, audit: null })
  return plan
}

/** The input as it is stored. One that a command has stored has its mapping, and is not copied again. */
async function storeInput(
  deps: { dataDir: string; shared: SharedFolder },
  input: ParsedImport,
): Promise<StoredInput & { hash: string }> {
  const { kind, columns, file, mapping } = input
  const inside = (path: string) => insideFolder({ ...deps, path, command: 'import' })
  const path = await inside(file)
  const base: Mapping = mapping === undefined ? {} : await readMapping(await inside(mapping))
  for (const lookup of Object.values(base.lookups ?? {})) await inside(lookup)
  const hash = hashIn({ file, mapping })
  if (hash !== undefined && mapping !== undefined && Object.keys(readingOf(input)).length === 0)
    return { hash, file, mapping }
  await using prepared = await prepareInput({
    dataDir: deps.dataDir,
    files: { kind, columns, file: path, mapping: toMapping({ ...input, base }) },
  })
  const stored = await prepared.keep()
  await shareInput({ ...deps, ...stored })
  return { hash: prepared.hash, ...stored }
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

/** The parsed input, with what the kind and the worker decide, and what was approved in the same run before. */
function toPlan(
  options: Parameters<typeof openImport>[0] &
    Pick<ImportPlan, 'run' | 'file' | 'mapping' | 'fingerprint'> & { noted: Noted<ImportNotes> },
): ImportPlan {
  const { deps, input, execution, startedAt, run, file, mapping, fingerprint, noted } = options
  const { plan: before, decisions } = noted
  const { does, one, listed = false } = importKinds[input.kind]
  const limits = importLimits.parse(input)
  return {
    ...importSettings.parse(input),
    job: 'import',
    run,
    execution,
    folder: `imports/${toFileName(run)}`,
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
    verifyAfter: Math.max(input.verifyAfter ?? 0, deps.settleMs / 1_000),
    // A person decides on each of the rows that are resolved, however many failed before.
    limits: input.onlyResolved ? { ...limits, maxFailures: undefined } : limits,
    decided: {
      approval: decisions.some(({ about }) => about === 'approval'),
      canary: decisions.some(({ about }) => about === 'canary' || about === 'sending'),
    },
  }
}
