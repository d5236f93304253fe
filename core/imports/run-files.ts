import { join, relative } from 'node:path'
import type { RetentionAudit } from '../changes/audit-retentions.ts'
import { type Identity, refuseOther } from '../runs/identity.ts'
import type { TypedOption } from '../runs/input-fields.ts'
import { runFolder } from '../runs/known-run.ts'
import { type EndedNote, readNote } from '../runs/run-files.ts'
import { resolveInside } from '../storage/inside.ts'
import type { FileCheck } from './check.ts'
import type { ControlTotals } from './totals.ts'
import { type ImportPlan, runFiles } from './input.ts'
import type { ImportFile } from './open-file.ts'
import { readMapping } from './mapping/mapping.ts'

/**
 * Where the data folder has the files of imports. Each input has a folder that is named after its hash, so it never
 * changes, any number of runs refer to it, and nothing copies it again.
 */
export const inputsFolder = 'imports/input'

/** What was staged of a file. Counts only, because it is part of the history. */
export interface StagedNote {
  rows: number
  changes: number
  /** How many changes are in the ledger, including those closed from the start. */
  staged: number
  invalid: number
  problems: number
  /** Skipped because an earlier run did them, or because the service already has them. */
  doneEarlier: number
  /** Done by an earlier run, which has them in doubt. */
  doubtfulEarlier: number
  existed: number
  totals: ControlTotals
  /** The newest `created` in the list before the first send: the audit starts there. */
  newestBefore?: string
  /** Why the search for existing records may have missed some; empty if it was proven complete. */
  existingReasons: string[]
}

/** The first findings of an audit; `findings.jsonl` has all of them. */
export interface AuditNote extends RetentionAudit {
  first: { row: number; message: string }[]
}

/** The file of a run as a person gave it to a command, so that the next command names it and not the stored copy. */
export interface Origin {
  /** An absolute path. */
  file: string
  /** The options that say how it is read, as typed: `['map', 'RUT=supplier']`. */
  reading: TypedOption[]
}

/**
 * What is known of a run besides its rows, which are in the ledger. Any part may be missing after a crash.
 */
export interface ImportNotes {
  check: FileCheck | undefined
  staged: StagedNote | undefined
  audit: AuditNote | undefined
  ended: EndedNote | undefined
  /** Absent for a run that no command of this machine has started. */
  origin: Origin | undefined
}

export async function readRunNotes(folder: string): Promise<ImportNotes> {
  const [check, staged, audit, ended, origin] = await Promise.all([
    readNote<FileCheck>(join(folder, runFiles.check)),
    readNote<StagedNote>(join(folder, runFiles.staged)),
    readNote<AuditNote>(join(folder, runFiles.audit)),
    readNote<EndedNote>(join(folder, runFiles.ended)),
    readNote<Origin>(join(folder, runFiles.origin)),
  ])
  return { check, staged, audit, ended, origin }
}

export const readPlan = (folder: string): Promise<ImportPlan | undefined> =>
  readNote<ImportPlan>(join(folder, runFiles.plan))

/**
 * The plan of an import; undefined if the data folder has no such run, or if one of its files is elsewhere.
 *
 * @throws {WrongWorker}
 */
export async function findImport(
  { dataDir, identity }: { dataDir: string; identity: Identity },
  run: string,
): Promise<ImportPlan | undefined> {
  const folder = await runFolder({ dataDir, room: 'imports', run })
  const plan = folder === undefined ? undefined : await readPlan(folder)
  if (folder === undefined || plan?.run !== run || plan.folder !== relative(dataDir, folder)) return undefined
  const root = join(dataDir, inputsFolder)
  for (const path of [plan.file, plan.mapping])
    if ((await resolveInside({ root, path: join(dataDir, path) })) === undefined) return undefined
  refuseOther({ run: plan.identity, worker: identity })
  return plan
}

/** The file of a run as it is read for its check, its staging and its results. */
export async function fileOf({
  plan,
  dataDir,
  check,
}: {
  plan: Pick<ImportPlan, 'kind' | 'file' | 'mapping'> & {
    columns?: readonly string[] | undefined
  }
  dataDir: string
  /** The check of the same file, so that it is not examined again. */
  check?: FileCheck | undefined
}): Promise<ImportFile> {
  return {
    kind: plan.kind,
    path: join(dataDir, plan.file),
    mapping: await readMapping(join(dataDir, plan.mapping)),
    columns: plan.columns,
    table: check?.table,
  }
}

/** What is staged of a file, and how much of it remains to be sent. */
export interface Staged extends StagedNote {
  open: number
  /** Distinct rows to send first; none if there are few, or if one of them is done. */
  canary: number[]
}
