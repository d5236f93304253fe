import type { Manifest } from '../manifest.ts'

/** What a read says of itself that tells whether a record it does not hold is gone. */
export type WholeRead = Pick<Manifest, 'verdict' | 'mode' | 'filters' | 'capped' | 'clock'> & {
  rejected: { rows: number }
  hiddenFound?: unknown
}

/** Whether it was a proven read of the whole list. */
export const isOfAll = ({ verdict, mode, filters, capped }: WholeRead): boolean =>
  verdict === 'proven' && mode === 'full' && Object.keys(filters).length === 0 && !capped

/** Why a record that a proven read of the whole list does not hold may be there all the same, in half a sentence. */
export function doubtOf({ rejected, hiddenFound, clock }: WholeRead): string | undefined {
  if (rejected.rows > 0)
    return `${rejected.rows} of what came had no id that can be kept (see _rejected), and any of them may be one of these`
  if (hiddenFound === true)
    return 'the list hides records by their status, and one whose status changed during the read may have been missed'
  // Set right after the read, it would have a record that came since look as if it had been there before.
  if (clock === 'local')
    return "the service told no time, so which records the read should have seen rests on this machine's clock"
  return undefined
}
