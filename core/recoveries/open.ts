import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { toMs } from '../runs/inputs.ts'
import type { EndedNote, RunNotes } from '../runs/run-notes.ts'
import { toFileName } from '../storage/file-name.ts'
import type { CandidateRead } from './candidates.ts'
import {
  type CandidateFilter,
  type ParsedRecovery,
  type RecoveryPlan,
  narrowing,
  recoveryLimits,
  recoverySettings,
} from './input.ts'
import { triedReasons } from './reasons.ts'
import type { Preview } from './select.ts'

/** The result of the snapshot: only counts, because it is also part of the history. */
export interface SnapshotNote extends Omit<CandidateRead, 'candidates'> {
  takenAt: string
  candidates: number
  /** The number of staged rows, whether resumed or only reported. */
  staged: number
  preview: Preview
}

/** What is known of a recovery besides its rows. */
export interface RecoveryNotes {
  plan: RecoveryPlan
  /** The original input, to start a run with the same input again, and its lists. */
  asked: { input: Readonly<Record<string, unknown>>; narrowing: CandidateFilter }
  /** The list requests of all attempts, each counted before it leaves. */
  requests: number
  /** What the snapshot decided, and the folder of its changes: from then on every attempt stages the same ones. */
  decided: SnapshotNote & { changes?: string }
  /** The same once all of them are staged. */
  snapshot: SnapshotNote
  /** Since a repair, until its next segment of sending: see `claimsAtRepair` in core/changes/old-ledger.ts. */
  atRepair: number
  ended: EndedNote
}

/** Notes a plan, together with its input. */
export async function saveRecoveryPlan(options: {
  dataDir: string
  notes: RunNotes
  plan: RecoveryPlan
  input: unknown
}): Promise<void> {
  const { dataDir, notes, plan } = options
  const { identity: _, ...input } = options.input as Record<string, unknown>
  await mkdir(join(dataDir, plan.folder), { recursive: true })
  const asked: RecoveryNotes['asked'] = { narrowing: narrowing.parse(input), input }
  await notes.write(plan.run, { plan, asked })
}

/** The parsed input, with what the worker decides. */
export function toRecoveryPlan({
  input,
  settleMs,
  ...run
}: Pick<RecoveryPlan, 'run' | 'execution' | 'startedAt' | 'identity' | 'settleMs'> & {
  input: ParsedRecovery
}): RecoveryPlan {
  const { reasons, attended, approval, verifyAfter } = input
  return {
    ...recoverySettings.parse(input),
    ...run,
    job: 'recovery',
    folder: `recoveries/${toFileName(run.run)}`,
    reasons: [...new Set(reasons ?? triedReasons)],
    named: reasons !== undefined,
    attended: attended || approval,
    verifyAfter: verifyAfter ?? settleMs / 1_000,
    settleMs: Math.max(toMs(verifyAfter ?? 0), settleMs),
    limits: recoveryLimits.parse(input),
  }
}
