import { join } from 'node:path'
import { type Decision, type EndedNote, readDecisions, readNote } from '../runs/run-files.ts'
import type { Preview } from './preview.ts'
import { type RecoveryPlan, recoveryFiles } from './plan.ts'
import type { CandidateRead } from './candidates/candidate.ts'
import type { LeftOut, Narrowing } from './candidates/select.ts'

/** What the snapshot came to. Counts only: it is part of the history too. */
export interface SnapshotNote extends Omit<CandidateRead, 'candidates'> {
  takenAt: string
  candidates: number
  leftOut: LeftOut
  /** How many rows were staged: resumed or only reported. */
  staged: number
  preview: Preview
  /** Left unsettled by recoveries that died, and settled by this one before it began. */
  settledBefore: number
}

/** A plan as it lies in the run's folder: with what is too long for the history. */
export interface SavedPlan {
  plan: RecoveryPlan
  narrowing: Narrowing
  /** The input as it was given, so that it can be given again. */
  asked: Readonly<Record<string, unknown>>
}

/** What is known of a recovery beside its rows. Everything may be missing: runs die. */
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

/** What of a recovery is staged, and how much of it is still to be resumed. */
export interface Snapshot extends SnapshotNote {
  open: number
  /** Rows that go first, of each reason; none where the run was resuming before. */
  canary: number[]
}
