import { join, relative } from 'node:path'
import { type EndedNote, readNote } from '../runs/run-files.ts'
import type { LeftOut, Preview } from './select.ts'
import {
  type Narrowing,
  type ParsedRecovery,
  type RecoveryPlan,
  narrowing,
  recoveryFiles,
  recoveryLimits,
  recoverySettings,
} from './input.ts'
import type { CandidateRead } from './candidates.ts'
import { mkdir } from 'node:fs/promises'
import { toMs } from '../runs/duration.ts'
import { namesIn } from '../runs/name.ts'
import { replaceFile } from '../storage/durable.ts'
import { triedReasons } from './reasons.ts'
import { type Identity, refuseOther } from '../runs/identity.ts'
import { runFolder } from '../runs/known-run.ts'

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
}

export async function readRecoveryNotes(folder: string): Promise<RecoveryNotes> {
  const [snapshot, ended] = await Promise.all([
    readNote<SnapshotNote>(join(folder, recoveryFiles.snapshot)),
    readNote<EndedNote>(join(folder, recoveryFiles.ended)),
  ])
  return { snapshot, ended }
}

export const readSavedPlan = (folder: string): Promise<SavedPlan | undefined> =>
  readNote<SavedPlan>(join(folder, recoveryFiles.plan))

/** What a recovery has staged, and how much of it is still to be resumed. */
export interface Snapshot extends SnapshotNote {
  open: number
  /** Rows of each reason that go first; none of a reason whose canary has a result. */
  canary: number[]
}

/** Names a recovery after its workflow id; a reused id gives `<id>.2`. */
export async function nameRecovery({
  dataDir,
  execution,
}: {
  dataDir: string
  execution: RecoveryPlan['execution']
}): Promise<{ run: string; folder: string; plan?: RecoveryPlan }> {
  const { workflowId, runId } = execution
  for await (const place of namesIn({ dataDir, room: 'recoveries', workflowId })) {
    const saved = await readSavedPlan(join(dataDir, place.folder))
    if (saved === undefined) return place
    if (saved.plan.execution.runId === runId) return { ...place, plan: saved.plan }
  }
  throw new RangeError('the names of a run have an end')
}

/** Saves a plan in the run's folder, together with its input. */
export async function saveRecoveryPlan(options: {
  dataDir: string
  plan: RecoveryPlan
  input: unknown
}): Promise<void> {
  const { dataDir, plan } = options
  const { identity: _, ...input } = options.input as Record<string, unknown>
  await mkdir(join(dataDir, plan.folder), { recursive: true })
  const saved: SavedPlan = { plan, narrowing: narrowing.parse(input), input }
  await replaceFile(join(dataDir, plan.folder, recoveryFiles.plan), JSON.stringify(saved))
}

/** The parsed input, with what the worker decides. */
export function toRecoveryPlan({
  input,
  settleMs,
  ...run
}: Pick<RecoveryPlan, 'run' | 'folder' | 'execution' | 'startedAt' | 'identity' | 'settleMs'> & {
  input: ParsedRecovery
}): RecoveryPlan {
  const { reasons, attended, approval, verifyAfter } = input
  return {
    ...recoverySettings.parse(input),
    ...run,
    reasons: [...new Set(reasons ?? triedReasons)],
    named: reasons !== undefined,
    attended: attended || approval,
    verifyAfter: verifyAfter ?? settleMs / 1_000,
    settleMs: Math.max(toMs(verifyAfter ?? 0), settleMs),
    limits: recoveryLimits.parse(input),
  }
}

/**
 * Loads the plan of a recovery; undefined if the data folder has no such run.
 *
 * @throws {WrongWorker} the run belongs to another service, workspace or mode
 */
export async function findRecovery(
  { dataDir, identity }: { dataDir: string; identity: Identity },
  run: string,
): Promise<RecoveryPlan | undefined> {
  const folder = await runFolder({ dataDir, room: 'recoveries', run })
  const saved = folder === undefined ? undefined : await readSavedPlan(folder)
  if (folder === undefined || saved?.plan.run !== run) return undefined
  if (saved.plan.folder !== relative(dataDir, folder)) return undefined
  refuseOther({ run: saved.plan.identity, worker: identity })
  return saved.plan
}
