import { join } from 'node:path'
import { closeRemaining } from '../changes/reconcile/close-remaining.ts'
import type { EndedNote, RunEnd } from '../runs/run-files.ts'
import type { View } from '../runs/view/view.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import { replaceFile } from '../storage/durable.ts'
import { type RecoveryPlan, recoveryFiles } from './input.ts'
import { writeRecoveryReport } from './report.ts'
import { readSavedPlan } from './open.ts'
import type { RecoveryReport } from './view.ts'

/** Closes the subscriptions of a recovery that remain, and writes its report and its files. */
export async function closeRecovery(
  options: RunEnd & { ledger: Ledger; dataDir: string; isShared: boolean; plan: RecoveryPlan },
): Promise<{ result: RecoveryReport; view: View }> {
  const { ledger, dataDir, isShared, plan, how, why } = options
  const folder = join(dataDir, plan.folder)
  const saved = await readSavedPlan(folder)
  if (saved === undefined) throw new RangeError(`${plan.run} has no plan`)
  await closeRemaining({ ledger, run: plan.run, why: why ?? 'the run ended' })
  const note: EndedNote = { how, ...(why !== undefined && { why }), at: new Date().toISOString() }
  await replaceFile(join(folder, recoveryFiles.ended), JSON.stringify(note))
  const { result, outward: view } = await writeRecoveryReport({ ledger, saved, dataDir, isShared })
  return { result, view }
}
