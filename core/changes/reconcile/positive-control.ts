import type { LedgerRow } from '../../state/ledger/row.ts'
import { type LookUpDeps, lookUp } from './lookup.ts'
import type { Outcome } from '../outcomes.ts'

interface Failure {
  outcome: Outcome
  words: string
}

const noControl: Failure = { outcome: 'noControl', words: 'no change of this run is known to be done' }

/**
 * Whether the look-up can find anything at all: the same look-up for the change of this run that was done last.
 * A filter that is ignored, or a list that lags behind or has gone blind, would call everything absent. It is
 * asked anew after each absence, because a look from before says nothing of the list since.
 *
 * After a restore the ledger may not know of anything that the run has done. The control is then a record that the
 * service's own list shows: what was sent before the restore had longer to get there than any lost request.
 *
 * Undefined where it finds what is known to be done; else why an absence can't be believed.
 */
export async function controlFailure(
  options: LookUpDeps & { run: string },
  absent: Pick<LedgerRow, 'outcome'>,
): Promise<Failure | undefined> {
  const known = await options.ledger.lastDone({ run: options.run })
  if (known === undefined) return absent.outcome === 'restored' ? await listFailure(options) : noControl
  const seen = await lookUp(options, known)
  if (seen.seen === 'done' && seen.id === known.answerId) return undefined
  return {
    outcome: 'controlFailed',
    words: `the same look-up does not find row ${known.row}, which is done as ${known.answerId}`,
  }
}

async function listFailure({ kind, billing, signal }: LookUpDeps): Promise<Failure | undefined> {
  const listed = await kind.findListed?.({ billing, signal })
  if (listed === undefined) return noControl
  if (listed.found) return undefined
  return {
    outcome: 'controlFailed',
    words: `the same look-up does not find ${listed.id}, which the list shows`,
  }
}
