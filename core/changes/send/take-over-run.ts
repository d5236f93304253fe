import { sendWithinMs } from '../../billing/claimed-request.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import type { FencingToken } from '../../state/ledger/senders.ts'

/**
 * Makes the caller the run's sender; what the previous one was sending becomes unknown. On another machine that one may
 * still be running, and may send what it has claimed within `sendWithinMs`: lookups wait that much longer.
 */
export function takeOverRun({
  ledger,
  run,
  now = ledger.now,
}: {
  ledger: Ledger
  run: string
  now?: () => number
}): Promise<FencingToken> {
  const at = now()
  const unknownSince = ledger.isShared ? at + sendWithinMs : at
  return ledger.becomeSender({
    run,
    at,
    interrupted: { state: 'unknown', outcome: 'interrupted', unknownSince },
  })
}
