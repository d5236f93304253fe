import { join } from 'node:path'
import type { RetentionAudit } from '../changes/audit/finding.ts'
import { type Decision, type EndedNote, readDecisions, readNote } from '../runs/run-files.ts'
import type { FileCheck } from './check.ts'
import type { ControlTotals } from './control-totals.ts'
import { type ImportPlan, runFiles } from './plan.ts'
import type { ImportFile } from './open-file.ts'
import { readMapping } from './mapping/mapping.ts'

/** What was staged of a file. Counts only: it is part of the history too. */
export interface StagedNote {
  rows: number
  changes: number
  /** How many of them are in the ledger, those that are closed from the start included. */
  staged: number
  invalid: number
  problems: number
  /** Left out because an earlier run did them, or because the service had them. */
  doneEarlier: number
  existed: number
  totals: ControlTotals
  /** The newest `created` of the list before the first send; the lower end of the audit. */
  newestBefore?: string
  /** Why the look for what the service has already may have missed something; empty where it was proven. */
  existingReasons: string[]
}

/** The first of the findings of an audit; all of them are in a file beside it. */
export interface AuditNote extends RetentionAudit {
  first: { row: number; words: string }[]
}

/** What is known of a run beside its rows, which are in the ledger. Everything may be missing: runs die. */
export interface RunNotes {
  check: FileCheck | undefined
  staged: StagedNote | undefined
  audit: AuditNote | undefined
  ended: EndedNote | undefined
  decisions: Decision[]
}

export async function readRunNotes(folder: string): Promise<RunNotes> {
  const [check, staged, audit, ended, decisions] = await Promise.all([
    readNote<FileCheck>(join(folder, runFiles.check)),
    readNote<StagedNote>(join(folder, runFiles.staged)),
    readNote<AuditNote>(join(folder, runFiles.audit)),
    readNote<EndedNote>(join(folder, runFiles.ended)),
    readDecisions(folder),
  ])
  return { check, staged, audit, ended, decisions }
}

export const readPlan = (folder: string): Promise<ImportPlan | undefined> =>
  readNote<ImportPlan>(join(folder, runFiles.plan))

/** The file of a run as it is read for a check, for staging and for its results. */
export async function fileOf({
  plan,
  dataDir,
}: {
  plan: Pick<ImportPlan, 'kind' | 'file' | 'lines' | 'mapping' | 'columns'>
  dataDir: string
}): Promise<ImportFile> {
  return {
    kind: plan.kind,
    path: join(dataDir, plan.file),
    mapping: await readMapping(join(dataDir, plan.mapping)),
    ...(plan.columns !== undefined && { columns: plan.columns }),
    ...(plan.lines !== undefined && { lines: join(dataDir, plan.lines) }),
  }
}

/** What of a file is staged, and how much of it is still to be sent. */
export interface Staged extends StagedNote {
  open: number
  /** Rows that go first, unlike each other; none where there are few, or where the run was sending before. */
  canary: number[]
}
