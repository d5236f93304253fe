import type { LedgerRow } from '../../state/ledger/row.ts'
import { type LookupDeps, lookUp } from './lookup.ts'
import type { Outcome } from '../outcomes.ts'

interface Failure {
  outcome: Outcome
  message: string
}

const noControl: Failure = { outcome: 'noControl', message: 'no change of this run is known to be done' }

/**
 * The positive control: repeats the lookup for the change of this run that was done last, which must be found. With an
 * ignored filter, or with a list that lags or is empty, every change would look absent. The control runs again after
 * each absence, because an earlier one says nothing about the list now.
 *
 * After a restore the ledger may not contain anything that the run has done. The control is then a record that the
 * service's own list shows: requests sent before the restore had longer to take effect than any lost request.
 *
 * Returns undefined if the lookup finds the known change, else the reason why an absence proves nothing.
 */
export async function controlFailure(
  options: LookupDeps & { run: string },
  absent: Pick<LedgerRow, 'outcome'>,
): Promise<Failure | undefined> {
  const known = await options.ledger.lastDone({ run: options.run })
  if (known === undefined) return absent.outcome === 'restored' ? await listFailure(options) : noControl
  const found = await lookUp(options, known)
  // The service may have it twice, and the ledger either of the two.
  if (found.result === 'done' && [found.id, ...(found.otherIds ?? [])].includes(known.answerId ?? ''))
    return undefined
  return {
    outcome: 'controlFailed',
    message: `the same lookup does not find row ${known.row}, which is done as ${known.answerId}`,
  }
}

async function listFailure({ kind, billing, signal }: LookupDeps): Promise<Failure | undefined> {
  const listed = await kind.findListed?.({ billing, signal })
  if (listed === undefined) return noControl
  if (listed.found) return undefined
  return {
    outcome: 'controlFailed',
    message: `the same lookup does not find ${listed.id}, which is in the list`,
  }
}
