import { defaultLimits, type Limits } from '../../core/changes/send/limits.ts'
import { importKinds } from '../../core/imports/kinds.ts'
import type { ImportLimits, ImportPlan } from '../../core/imports/plan.ts'
import type { SegmentInput, SendStep } from '../../core/changes/send/segment.ts'
import type { ActivityDeps } from '../deps.ts'
import { type SendDeps, sendSegment } from '../send-segment.ts'

/** Sends what an import has staged; see `sendSegment`. */
export function createSendImport(options: SendDeps) {
  return async function sendImport(
    input: SegmentInput & { plan: ImportPlan; limits: ImportLimits },
  ): Promise<SendStep> {
    const { plan, limits } = input
    const { run, settleMs, breakerWaitsMs } = plan
    const work = {
      run,
      kind: importKinds[plan.kind].change,
      settleMs,
      // Only resumes have attempts.
      attempts: { most: 1, waitsMs: [0] },
      limits: limitsOf({ deps: options.deps, limits }),
      ...(breakerWaitsMs && { breakerWaitsMs }),
    }
    return await sendSegment({ ...options, plan, work, input, requestsPerSecond: limits.requestsPerSecond })
  }
}

function limitsOf({ deps, limits }: { deps: ActivityDeps; limits: ImportLimits }): Limits {
  const { concurrency = deps.concurrency, maxChanges, maxFailures, maxFailureShare } = limits
  return {
    inFlight: concurrency,
    maxFailureShare: maxFailureShare ?? defaultLimits.maxFailureShare,
    ...(maxChanges !== undefined && { maxChanges }),
    ...(maxFailures !== undefined && { maxFailures }),
  }
}
