import type { Ledger } from '../../../core/state/ledger/ledger.ts'
import type { FencingToken } from '../../../core/state/ledger/senders.ts'

const tokens = new WeakMap<Ledger, Map<string, Promise<FencingToken>>>()

/** The test's right to claim changes of a run: taken once, so that what it was sending stays as it is. */
export function senderOf(ledger: Ledger, run: string): Promise<FencingToken> {
  const ofLedger = tokens.get(ledger) ?? new Map<string, Promise<FencingToken>>()
  tokens.set(ledger, ofLedger)
  const token =
    ofLedger.get(run) ?? ledger.becomeSender({ run, now: () => 0, interrupted: () => ({ state: 'unknown' }) })
  ofLedger.set(run, token)
  return token
}
