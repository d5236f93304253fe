import { join } from 'node:path'
import { importKinds } from '../../core/imports/kinds.ts'
import {
  type ImportLimits,
  type ImportPlan,
  canarySize,
  leaseOf,
  runFiles,
} from '../../core/imports/input.ts'
import { runFilesLost } from '../../core/changes/errors.ts'
import { toMs } from '../../core/runs/duration.ts'
import { readRunNotes } from '../../core/imports/run-files.ts'
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
    const folder = join(context.folder.dataDir, plan.folder)
    const { staged } = await readRunNotes(folder)
    if (staged === undefined) throw runFilesLost({ path: join(folder, runFiles.staged) })
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
