import type { Ledger } from '../../../core/state/ledger/ledger.ts'
import type { FencingToken, SendLease } from '../../../core/state/ledger/claims.ts'

/** The lease under which the tests of a run send. */
export const leaseOf = (run: string, attempt = 0): SendLease => ({
  name: `test ${run}`,
  owner: { workflowId: run, runId: 'first' },
  attempt,
})

export const takeRight = (ledger: Ledger, run: string, at = 0): Promise<FencingToken> =>
  ledger.becomeSender({
    run,
    lease: leaseOf(run),
    now: () => at,
    interrupted: (unknownSince) => ({ state: 'unknown', unknownSince }),
  })

const tokens = new WeakMap<Ledger, Map<string, Promise<FencingToken>>>()

/** The test's right to claim changes of a run: taken once, so that what it was sending stays as it is. */
export function senderOf(ledger: Ledger, run: string): Promise<FencingToken> {
  const ofLedger = tokens.get(ledger) ?? new Map<string, Promise<FencingToken>>()
  tokens.set(ledger, ofLedger)
  const token = ofLedger.get(run) ?? takeRight(ledger, run)
  ofLedger.set(run, token)
  return token
}
