import { importKinds } from '../../core/imports/kinds.ts'
import { type ImportLimits, type ImportPlan, canarySize, leaseOf } from '../../core/imports/input.ts'
import { OldLedgerError } from '../../core/state/errors.ts'
import { toMs } from '../../core/runs/duration.ts'
import type { ImportNotes } from '../../core/imports/run-files.ts'
import type { SendInput, SendStep } from '../../core/changes/send/sending.ts'
import type { StepContext } from '../step.ts'
import { type SendDeps, sendSegment } from '../changes/send-segment.ts'

/** Sends the staged changes of an import; see `sendSegment`. */
export function createSendImport(options: SendDeps) {
  return async function sendImport(
    context: StepContext,
    input: SendInput & { plan: ImportPlan; limits: ImportLimits },
  ): Promise<SendStep> {
    const { plan, limits } = input
    const { run, verifyAfter, breakerWaits } = plan
    // An execution that somebody reset continues as another one, which takes the lease over.
    await context.takeLeases([leaseOf(run)])
    const { staged } = await context.notes.read<ImportNotes>(run)
    if (staged === undefined) throw new OldLedgerError({ lacks: 'what this run has staged' })
    const work = {
      run,
      kind: importKinds[plan.kind].change,
      settleMs: toMs(verifyAfter),
      // Only resumes are attempted several times.
      attempts: { most: 1, waitsMs: [0] },
      canarySize: canarySize(plan),
      breakerWaitsMs: breakerWaits?.map(toMs),
    }
    const { requestsPerSecond } = limits
    return await sendSegment({
      ...options,
      context,
      plan,
      work,
      input,
      lease: { name: leaseOf(run), owner: context.owner },
      requestsPerSecond,
      staged: staged.staged,
    })
  }
}
