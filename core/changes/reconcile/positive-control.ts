import { type LookUpDeps, lookUp } from './lookup.ts'
import type { Outcome } from '../outcomes.ts'

/**
 * Whether the look-up can find anything at all: the same look-up for the change of this run that was done last.
 * A filter that is ignored, or a list that lags behind or has gone blind, would call everything absent. It is
 * asked anew after each absence, because a look from before says nothing of the list since.
 *
 * Undefined where it finds what is known to be done; else why an absence can't be believed.
 */
export async function controlFailure(
  options: LookUpDeps & { run: string },
): Promise<{ outcome: Outcome; words: string } | undefined> {
  const known = await options.ledger.lastDone({ run: options.run })
  if (known === undefined) return { outcome: 'noControl', words: 'no change of this run is known to be done' }
  const seen = await lookUp(options, known)
  if (seen.seen === 'done' && seen.id === known.answerId) return undefined
  return {
    outcome: 'controlFailed',
    words: `the same look-up does not find row ${known.row}, which is done as ${known.answerId}`,
  }
}
