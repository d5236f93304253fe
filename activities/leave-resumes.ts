import { join } from 'node:path'
import { endResumes, leaveUntried } from '../changes/end-of-run.ts'
import { markClaimed } from '../changes/ledger-gap.ts'
import type { RecoveryPlan } from '../recoveries/recovery-plan.ts'
import type { ActivityDeps } from './deps.ts'

/** Leaves a part of a recovery for good: the reasons whose canary failed, or all that was never resumed. */
export function createLeaveResumes(deps: ActivityDeps) {
  return async function leaveResumes({
    plan,
    lanes,
    why,
  }: {
    plan: RecoveryPlan
    /** The reasons; all of them where it is left out. */
    lanes?: readonly string[]
    why: string
  }): Promise<void> {
    const { ledger } = deps.state
    await markClaimed({ ledger, run: plan.run, folder: join(deps.dataDir, plan.folder) })
    const leave = { ledger, run: plan.run, why }
    if (lanes === undefined) await leaveUntried({ ...leave, which: { unsent: true } })
    for (const lane of lanes ?? []) await endResumes({ ...leave, lane })
  }
}
