import type { ImportGapDeps } from '../../core/imports/restored-ledger.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'

/** What a step of an import compares the ledger with. */
export function gapDeps({ deps, context }: { deps: ActivityDeps; context: StepContext }): ImportGapDeps {
  const { owner, isClosedTo, folder } = context
  return {
    state: deps.state,
    dataDir: folder.dataDir,
    isCopy: deps.shared.isShared,
    fetchRun: (of) => folder.fetchRun(of),
    owner,
    isClosed: isClosedTo(owner),
  }
}
