import { closeImport } from '../../core/imports/close.ts'
import { leaseOf } from '../../core/imports/restored-ledger.ts'
import { type ImportPlan, uploadOf } from '../../core/imports/plan.ts'
import type { ImportResult } from '../../core/imports/view.ts'
import type { RunEnd } from '../../core/runs/run-files.ts'
import { removeIfPermitted } from '../../core/storage/file-store.ts'
import type { View } from '../../core/runs/view/view.ts'
import { endSending } from '../changes/end-sending.ts'
import type { SendDeps } from '../changes/send-segment.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'

/**
 * Removes what a command handed over, and the run has a copy of. Not sooner: two attempts to open the run may be at work at
 * once, and the one that counts may be the second to fetch it.
 */
async function dropUpload({ deps, source }: { deps: ActivityDeps; source: string }): Promise<void> {
  const upload = uploadOf(source)
  if (!deps.shared.isShared || deps.files === undefined || upload === undefined) return
  for (const { path } of await deps.files.list(upload)) await removeIfPermitted(deps.files, path)
}

/** Ends an import: writes its report and files and releases its lease. */
export function createCloseImport({ deps, rates, attempts }: SendDeps) {
  return async (
    context: StepContext,
    input: RunEnd & { plan: ImportPlan },
  ): Promise<{ result: ImportResult; view: View }> => {
    const { state, observer } = deps
    const { folder } = context
    const { plan } = input
    context.report(() => ({ phase: 'writing the report' }))
    const { dataDir } = folder
    const isShared = deps.shared.isShared
    const closed = await context.outlast(async () => {
      await endSending({ ledger: state.ledger, attempts, run: plan.run })
      return await closeImport({ ...input, ledger: state.ledger, dataDir, isShared })
    })
    await folder.keep()
    await folder.prune()
    await dropUpload({ deps, source: plan.source })
    await context.outlast(() => state.leases.release({ name: leaseOf(plan.run), owner: context.owner }))
    rates.end(plan)
    observer.onEvent({ type: 'ended', run: plan.run, verdict: closed.result.verdict })
    return closed
  }
}
