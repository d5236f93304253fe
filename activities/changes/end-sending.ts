import { createSendRight } from '../../core/changes/send/sending.ts'
import type { Attempts } from '../../core/runs/sending-attempts.ts'
import type { SendLease } from '../../core/state/ledger/claims.ts'
import { refuseOlderThanMark, sharedMark } from '../../core/state/claims-mark.ts'
import type { ActivityDeps } from '../deps.ts'

/**
 * Ends the sending of a run, so that nothing leaves after its report is written: awaits the attempt of this process, and
 * takes the right to claim from an attempt on another machine, which may not know yet that it was given up.
 *
 * @throws {OldLedgerError} what looks unsent may have been sent, and its keys must not become free for other runs
 */
export async function endSending({
  deps,
  attempts,
  run,
  lease,
}: {
  deps: Pick<ActivityDeps, 'state' | 'shared' | 'dataDir'>
  attempts: Attempts
  run: string
  lease: SendLease
}): Promise<void> {
  const { ledger, leases } = deps.state
  await attempts.end(run)
  if (!ledger.isShared) return
  await refuseOlderThanMark({ ledger, mark: sharedMark(deps) })
  // An earlier attempt of this step has released the lease, and another run has taken it: nobody can claim for this one.
  const holder = await leases.holder(lease)
  if (holder !== undefined && holder.runId !== lease.owner.runId) return
  await createSendRight({ ledger, run, lease }).hold()
}
