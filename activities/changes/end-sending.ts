import { createSendRight } from '../../core/changes/send/send-right.ts'
import type { Attempts } from '../../core/runs/sending-attempts.ts'
import type { SendLease } from '../../core/state/ledger/claims.ts'
import type { State } from '../../core/state/open.ts'

/**
 * Ends the sending of a run, so that nothing leaves after its report is written: awaits the attempt of this process, and
 * takes the right to claim from an attempt on another machine, which may not know yet that it was given up.
 */
export async function endSending({
  state,
  attempts,
  run,
  lease,
}: {
  state: Pick<State, 'ledger' | 'leases'>
  attempts: Attempts
  run: string
  lease: SendLease
}): Promise<void> {
  const { ledger, leases } = state
  await attempts.end(run)
  if (!ledger.isShared) return
  // An earlier attempt of this step has released the lease, and another run has taken it: nobody can claim for this one.
  const holder = await leases.holder(lease)
  if (holder !== undefined && holder.runId !== lease.owner.runId) return
  await createSendRight({ ledger, run, lease }).hold()
}
