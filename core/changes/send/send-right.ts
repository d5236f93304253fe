import { sendWithinMs } from '../../billing/transport.ts'
import type { FencingToken, SendLease } from '../../state/ledger/claims.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'

/**
 * Takes the right to send a run's changes, for one attempt: lost to a later one, it is lost for good. What was being sent
 * and has no outcome becomes unknown. The previous holder may still be running on another machine, and may send what it
 * has claimed within `sendWithinMs`: lookups wait that much longer.
 *
 * @throws {SupersededError} a later attempt has taken it, or another run holds the lease
 */
export function takeRight(of: { ledger: Ledger; run: string; lease: SendLease }): Promise<FencingToken> {
  const { ledger } = of
  const leavesWithinMs = ledger.isShared ? sendWithinMs : 0
  const interrupted = (at: number) =>
    ({ state: 'unknown', outcome: 'interrupted', unknownSince: at + leavesWithinMs }) as const
  return ledger.becomeSender({ ...of, now: ledger.now, interrupted })
}
