import { sendWithinMs } from '../../billing/transport.ts'
import type { FencingToken, SendLease } from '../../state/ledger/claims.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'

/** The right of one attempt to send a run's changes. It is taken once: lost to another attempt, it is lost for good. */
export interface SendRight {
  /**
   * Takes the right at the first call; later calls make sure that the attempt still has it. What was being sent and has no
   * outcome becomes unknown.
   *
   * @throws {SupersededError} if another attempt has taken it since
   */
  hold(): Promise<FencingToken>
}

/**
 * The previous holder may still be running on another machine, and may send what it has claimed within `sendWithinMs`:
 * lookups wait that much longer.
 */
export function createSendRight(of: { ledger: Ledger; run: string; lease: SendLease }): SendRight {
  const { ledger, run, lease } = of
  let held: FencingToken | undefined
  return {
    hold: async () => {
      const leavesWithinMs = ledger.isShared ? sendWithinMs : 0
      const interrupted = (at: number) =>
        ({ state: 'unknown', outcome: 'interrupted', unknownSince: at + leavesWithinMs }) as const
      held = await ledger.becomeSender({ run, lease, now: ledger.now, interrupted, held })
      return held
    },
  }
}
