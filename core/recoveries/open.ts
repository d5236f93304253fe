import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { toMs } from '../runs/duration.ts'
import { namesIn } from '../runs/name.ts'
import { replaceFile } from '../storage/durable.ts'
import { narrowing, type ParsedRecovery, recoveryLimits, recoverySettings } from './input.ts'
import { type RecoveryPlan, recoveryFiles } from './plan.ts'
import { triedReasons } from './reasons.ts'
import { readSavedPlan, type SavedPlan } from './run-files.ts'

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
