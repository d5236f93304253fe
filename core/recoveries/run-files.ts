import { join } from 'node:path'
import { type Decision, type EndedNote, readDecisions, readNote } from '../runs/run-files.ts'
import type { Preview } from './preview.ts'
import { type RecoveryPlan, recoveryFiles } from './plan.ts'
import type { CandidateRead } from './candidates/candidate.ts'
import type { LeftOut } from './candidates/select.ts'
import type { Narrowing } from './input.ts'

/** The result of the snapshot: only counts, because it is also part of the history. */
export interface SnapshotNote extends Omit<CandidateRead, 'candidates'> {
  takenAt: string
  candidates: number
  leftOut: LeftOut
  /** The number of staged rows, whether resumed or only reported. */
  staged: number
  preview: Preview
  /** The number of rows that recoveries that died had left unreconciled, reconciled before this one began. */
  settledBefore: number
}

/** A plan as saved in the run's folder, with the lists that are too long for the history. */
export interface SavedPlan {
  plan: RecoveryPlan
  narrowing: Narrowing
  /** The original input, to start a run with the same input again. */
  input: Readonly<Record<string, unknown>>
}

/** The data on a recovery besides its rows. Any of it may be missing if the run died. */
export interface RecoveryNotes {
  snapshot: SnapshotNote | undefined
  ended: EndedNote | undefined
  decisions: Decision[]
}

export async function readRecoveryNotes(folder: string): Promise<RecoveryNotes> {
  const [snapshot, ended, decisions] = await Promise.all([
    readNote<SnapshotNote>(join(folder, recoveryFiles.snapshot)),
    readNote<EndedNote>(join(folder, recoveryFiles.ended)),
    readDecisions(folder),
  ])
  return { snapshot, ended, decisions }
}

export const readSavedPlan = (folder: string): Promise<SavedPlan | undefined> =>
  readNote<SavedPlan>(join(folder, recoveryFiles.plan))

/** What a recovery has staged, and how much of it is still to be resumed. */
export interface Snapshot extends SnapshotNote {
  open: number
  /** Rows of each reason that go first; none of a reason whose canary has a result. */
  canary: number[]
}
