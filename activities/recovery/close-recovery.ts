import { heartbeat } from '@temporalio/activity'
import { join } from 'node:path'
import { endResumes } from '../../core/changes/reconcile/close-remaining.ts'
import { replaceFile } from '../../core/storage/durable.ts'
import { markClaimed } from '../../core/changes/ledger-gap.ts'
import type { EndedNote } from '../../core/runs/run-files.ts'
import { type RecoveryPlan, recoveryFiles } from '../../core/recoveries/plan.ts'
import { readSavedPlan } from '../../core/recoveries/run-files.ts'
import { type RecoveryReport } from '../../core/recoveries/view.ts'
import { writeRecoveryReport } from '../../core/recoveries/report.ts'
import type { SendDeps } from '../send-segment.ts'
import { claimOf } from './open-recovery.ts'
import { withHeartbeat } from '../heartbeat.ts'

export interface CloseRecoveryInput {
  plan: RecoveryPlan
  how: EndedNote['how']
  /** For people: what ended it, where it was not the end of its candidates. */
  why?: string
}

export type RecoveryResult = RecoveryReport

/** Ends a recovery: its report and its files, and the workspace is free for the next one. */
export function createCloseRecovery({ deps, rates, attempts }: SendDeps) {
  return async function closeRecovery({ plan, how, why }: CloseRecoveryInput): Promise<RecoveryResult> {
    const { ledger, claims } = deps.state
    const folder = join(deps.dataDir, plan.folder)
    const saved = await readSavedPlan(folder)
    if (saved === undefined) throw new RangeError(`${plan.run} has no plan`)
    return await withHeartbeat({
      report: () => heartbeat({ phase: 'writing the report' }),
      work: async () => {
        await attempts.end(plan.run)
        // What was resumed since a backup that was put back is not free for another run.
        await markClaimed({ ledger, run: plan.run, folder })
        await endResumes({ ledger, run: plan.run, why: why ?? 'the run ended' })
        const note: EndedNote = { how, ...(why !== undefined && { why }), at: new Date().toISOString() }
        await replaceFile(join(folder, recoveryFiles.ended), JSON.stringify(note))
        const report = await writeRecoveryReport({ ledger, saved, dataDir: deps.dataDir })
        await claims.release({ what: claimOf(plan), owner: plan.execution })
        rates.end(plan)
        return report
      },
    })
  }
}
