import type { Manifest } from '../manifest/manifest.ts'

/** The facts of a read that decide whether a record missing from it is gone. */
export type WholeRead = Pick<Manifest, 'verdict' | 'mode' | 'filters' | 'capped' | 'clock'> & {
  rejected: { rows: number }
  hiddenFound?: unknown
  statusCheck?: unknown
}

/** Whether it was a proven read of the whole list. */
export const isOfAll = ({ verdict, mode, filters, capped }: WholeRead): boolean =>
  verdict === 'proven' && mode === 'full' && Object.keys(filters).length === 0 && !capped

/** Why a record missing from a proven read of the whole list may still exist, as half a sentence. */
export function caveatOf({ rejected, hiddenFound, statusCheck, clock }: WholeRead): string | undefined {
  if (rejected.rows > 0)
    return `${rejected.rows} of what came had no id that can be kept (see _rejected), and any of them may be one of these`
  if (hiddenFound === true)
    return 'the list hides records by their status, and one whose status changed during the read may have been missed'
  if (statusCheck === 'unread')
    return 'a record that changed during the read is shown under its status and was not read, so the list may hide records by their status'
  if (statusCheck === 'unordered')
    return 'the list does not honour ordering=-updated, so a record that went to a hidden status during the read looks as if it were gone'
  if (statusCheck === 'unseen')
    return 'more records changed during the read than one page of a status shows, so one that went to a hidden status may have been missed'
  // A local clock set back after the read would make a record created since look as if it had been there
  // before.
  if (clock === 'local')
    return "the service told no time, so which records the read should have seen rests on this machine's clock"
  return undefined
}
