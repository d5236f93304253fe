import { subscriptions } from '../../core/billing/resources/subscriptions.ts'
import { createResumeKind } from '../../core/changes/kinds/resume-subscription.ts'
import { closeRemaining } from '../../core/changes/close.ts'
import { refuseForgotten } from '../../core/changes/staged-changes.ts'
import { leaseOf, parseRecoveryInput, type RecoveryPlan, waitsOf } from '../../core/recoveries/input.ts'
import { type RecoveryNotes, saveRecoveryPlan, toRecoveryPlan } from '../../core/recoveries/open.ts'
import { endOf, refusalOf } from '../../core/recoveries/refusal.ts'
import { writeRecoveryReport } from '../../core/recoveries/report.ts'
import { takeSnapshot } from '../../core/recoveries/snapshot.ts'
import { toPreviewTables } from '../../core/recoveries/view.ts'
import { toMs } from '../../core/runs/inputs.ts'
import { refuseOther } from '../../core/runs/identity.ts'
import type { Job } from './job.ts'

export const recoveryJob: Job<RecoveryPlan> = {
  async open({ deps, context, request, firstRunId, check }) {
    const { identity, settleMs, notes } = deps
    const { owner, scheduledAt: startedAt, takeLeases } = context
    const execution = { workflowId: owner.workflowId, runId: firstRunId }
    const { run, noted } = await notes.name<RecoveryNotes>(
      execution.workflowId,
      ({ job, execution: { runId } }) => job === 'recovery' && runId === firstRunId,
    )
    const { plan: kept } = noted
    const takeLease = async (plan: RecoveryPlan, again = false) => {
      const { name, taken } = recoveryJob.lease(plan, context)
      if (taken !== 'never') await takeLeases([name], { owner: execution, again })
    }
    if (kept !== undefined) {
      refuseOther({ run: kept.identity, worker: identity })
      await takeLease(kept, true)
      return kept
    }
    await refuseForgotten(deps, run)
    const input = parseRecoveryInput(request)
    await check({ identity: input.identity, resource: subscriptions })
    const plan = toRecoveryPlan({ input, run, execution, startedAt, identity, settleMs })
    await takeLease(plan)
    await saveRecoveryPlan({ ...deps, plan, input: request })
    return plan
  },
  // A dry run resumes nothing, and does not keep a recovery from beginning. No run takes it again once another one has had it:
  // that one may have resumed what this one, reset, has in its books as not resumed yet.
  lease: (plan) => ({
    name: leaseOf(plan),
    owner: plan.execution,
    taken: plan.dryRun ? 'never' : 'untilEnd',
  }),
  async stage({ deps, context, plan, billing }) {
    const { signal, report, takeLeases } = context
    let progress = { phase: 'checking what an earlier recovery left open' }
    report(() => progress)
    const { name, owner, taken } = recoveryJob.lease(plan, context)
    const holdLease = () =>
      taken === 'never' ? Promise.resolve() : takeLeases([name], { owner, again: true })
    const onProgress = (now: { phase: string }) => (progress = now)
    const of = { deps: { ...deps, holdLease }, plan, billing, signal, onProgress }
    const snapshot = await takeSnapshot(of)
    return { ...snapshot, tables: toPreviewTables(snapshot.preview) }
  },
  staged: async (notes, run) => (await notes.read<RecoveryNotes>(run)).snapshot?.staged,
  work: (plan) => ({
    run: plan.run,
    kind: createResumeKind({
      refuses: (reasons) => refusalOf({ plan, ...reasons }),
      attempts: plan.attempts,
      ends: () => endOf(plan, Date.now()),
    }),
    settleMs: plan.settleMs,
    verifyMs: toMs(plan.verifyAfter),
    attempts: { most: plan.attempts, waitsMs: waitsOf(plan) },
    canarySize: { size: plan.canary },
    breakerWaitsMs: plan.breakerWaits?.map(toMs),
  }),
  leave: ({ ledger, run, sender, why = 'the run ended' }) => closeRemaining({ ledger, run, why, sender }),
  report: writeRecoveryReport,
}
