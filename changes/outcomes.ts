import type { ChangeState } from '../state/tables.ts'

/** What became of a change, in one word each; the sentences are for people and for the docs. */
export const outcomes = {
  created: 'the service answered that it created it',
  updated: 'the service answered that it updated it',
  deleted: 'the service answered that it deleted it',
  storedOtherwise: 'the service answered that it did it, with other values than were sent',
  found: 'its reply was lost, and a look-up found it done',
  recovered: 'a look after the resume saw it active',
  alreadyFine: 'the look just before saw that nothing was left to do',
  resolved: 'a person said that it is there',
  wrongMode: 'the service did it in the other mode (live or test)',
  doubled: 'the service did it more than once',

  refused: 'the service refused it',
  invalid: 'it was not valid and was never sent',

  resumed: 'the service took the resume; a look will say what became of it',
  lostReply: 'it was sent, and no whole reply came',
  noId: 'it was answered without the id of what was created',
  interrupted: 'the process ended while it was being sent',
  restored: 'the ledger is older than the run, so it may have been sent',
  missing: 'the run staged it and the ledger lacks it; the same command stages it again',
  refusedLater: 'it was refused when sent again; the first time may have been taken',

  neverSent: 'no request left, so it can be sent',
  absent: 'two look-ups proved that it is not there',
  repeatable: 'its reply was lost; once more does no harm',
  fellBack: 'the resume did not last',
  noEffect: 'no effect of the resume was seen',

  cannotLookUp: 'its reply was lost and the service has no way to look it up',
  otherContents: 'the service has another record under the same key',
  indistinct: 'an earlier change under the same key is done under an unknown id',
  filterIgnored: 'the service did not filter by what was asked for, so absence can’t be seen',
  noControl: 'nothing of this run is known to be done, so a look-up that finds nothing proves nothing',
  controlFailed: 'the look-up does not find a change that is known to be done',
  sentTooOften: 'it was sent several times without an answer',
  attemptsUsedUp: 'every attempt to resume it fell back',
  needsPerson: 'its reason needs a person',
  notFound: 'the record was not found',
  gone: 'it was cancelled or finalized meanwhile',

  notTried: 'the run ended before it was tried',
  coolingDown: 'it was resumed not long ago',
  doneEarlier: 'an earlier run has done it',
  existed: 'the service had it before the run',
  takenOver: 'the run had not sent it when it ended, and another run has taken it over',
  dropped: 'a person dropped it',
  nothingGiven: 'its cells are empty, so there was nothing to change',
} as const satisfies Record<string, string>

/** Rejected, fallen back and parked changes have failed; whatever is still open has not. */
export const hasFailed = ({ state, outcome }: { state: ChangeState; outcome: string | null }): boolean =>
  state === 'rejected' ||
  state === 'parked' ||
  (state === 'staged' && (outcome === 'fellBack' || outcome === 'noEffect'))

export type Outcome = keyof typeof outcomes
