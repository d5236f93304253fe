import { access } from 'node:fs/promises'
import { join } from 'node:path'
import type { RetentionAudit } from '../changes/audit-retentions.ts'
import type { TypedOption } from '../runs/inputs.ts'
import type { EndedNote } from '../runs/run-notes.ts'
import type { FileCheck } from './check.ts'
import { isSystemError } from '../storage/system-errors.ts'
import { MissingInput } from './errors.ts'
import type { ControlTotals } from './totals.ts'
import type { ImportPlan } from './input.ts'
import type { ImportFile } from './open-file.ts'
import { readMapping } from './mapping/mapping.ts'

/**
 * Where the data folder has the files of imports. Each input has a folder that is named after its hash, so it never
 * changes, any number of runs refer to it, and nothing copies it again.
 */
export const inputsFolder = 'imports/input'

/** What was staged of a file. Counts only, because it is part of the history. */
export interface StagedNote {
  /** How many changes are in the ledger, including those closed from the start. */
  staged: number
  invalid: number
  /** Done by an earlier run, which has them in doubt. */
  doubtfulEarlier: number
  /** Rows on which a person has decided in an earlier run, which has done them or leaves them to this one. */
  resolvedEarlier: number
  totals: ControlTotals
  /** The newest `created` in the list before the first send: the audit starts there. */
  newestBefore?: string
  /** Why the search for existing records may have missed some; empty if it was proven complete. */
  existingReasons: readonly string[]
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

/** What is known of an import besides its rows. */
export interface ImportNotes {
  plan: ImportPlan
  check: FileCheck
  /** Of a dry run: rows not to be sent, because an earlier run did them or the service has them. */
  skipped: number
  staged: StagedNote
  audit: AuditNote
  ended: EndedNote
}

/** @throws {MissingInput} */
export async function refuseMissing(path: string): Promise<void> {
  await access(path).catch((cause: unknown) => {
    throw isSystemError(cause, 'ENOENT') ? new MissingInput(path, { cause }) : cause
  })
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
  const path = join(dataDir, plan.file)
  for (const one of [join(dataDir, plan.mapping), path]) await refuseMissing(one)
  return {
    kind: plan.kind,
    path,
    mapping: await readMapping(join(dataDir, plan.mapping)),
    columns: plan.columns,
    table: check?.table,
  }
}
