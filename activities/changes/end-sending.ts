import type { Attempts } from '../../core/runs/sending-attempts.ts'
import { createSendRight } from '../../core/changes/send/send-right.ts'
import type { Ledger } from '../../core/state/ledger/ledger.ts'

/**
 * Ends the sending of a run, so that nothing leaves after its report is written: awaits the attempt of this process, and
 * takes the right to claim from an attempt on another machine, which may not know yet that it was given up.
 */
export async function endSending({
  ledger,
  attempts,
  run,
}: {
  ledger: Ledger
  attempts: Attempts
  run: string
}): Promise<void> {
  await attempts.end(run)
  if (ledger.isShared) await createSendRight({ ledger, run }).hold()
}
