import type { ChangeState } from '../state/schema.ts'
import { connector } from '../runs/view/shell.ts'

/** The outcomes of a change, each with the sentence shown in reports and docs. */
export const outcomes = {
  created: 'the service answered that it did it',
  updated: 'the service answered that it did it',
  deleted: 'the service answered that it did it',
  storedDifferently: 'the service did it, but with other values',
  found: 'the reply was lost; a lookup found it done',
  recovered: 'a lookup after the resume found it active',
  alreadyFine: 'the check before sending found nothing left to do',
  resolved: 'a person confirmed that it exists',
  wrongMode: 'the service did it in the other mode (live or test)',
  doubled: 'the service did it more than once',

  refused: 'the service refused it',
  invalid: 'it was invalid and was never sent',

  resumed: 'the service accepted the resume; a lookup will show the outcome',
  lostReply: 'it was sent, but no complete reply arrived',
  noId: 'the answer did not include the id of the created record',
  interrupted: 'the process ended while it was being sent',
  restored: 'the ledger was restored from a backup, so it may have been sent since',
  missing: `the run staged it, but the ledger lacks it; \`${connector`state repair`}\` stages it again`,
  refusedLater: 'it was refused when sent again; the first request may have been accepted',

  neverSent: 'no request left; it can be sent',
  absent: 'two lookups or a person showed that it does not exist',
  repeatable: 'the reply was lost; repeating it does no harm',
  stillOpen: 'after a restore, a lookup showed that it is not done',
  fellBack: 'the resume did not last',
  noEffect: 'the resume had no visible effect',

  cannotLookUp: 'it may have been sent, and the service has no way to look it up',
  otherContents: 'the service has another record under the same key',
  indistinct: 'an earlier change under the same key is done, but its id is unknown',
  filterIgnored: 'the service ignored the filter, so a lookup cannot show absence',
  noControl: 'no change of this run is known to be done, so finding nothing proves nothing',
  controlFailed: 'the lookup does not find a change that is known to be done',
  sentTooOften: 'it was sent several times without an answer',
  attemptsUsedUp: 'every attempt to resume it failed',
  needsPerson: 'its reason requires a person’s decision',
  notFound: 'the record was not found',
  gone: 'it was cancelled or finalized in the meantime',

  notTried: 'the run ended before it was tried',
  coolingDown: 'it was resumed recently',
  doneEarlier: 'an earlier run did it',
  doneOtherwise: 'an earlier run did it, with other values than this file has',
  existed: 'it existed in the service before the run',
  takenOver: 'the run ended without sending it, and another run took it over',
  dropped: 'a person dropped it',
  nothingGiven: 'its cells are empty: there is nothing to change',
} as const satisfies Record<string, string>

/** Whether the service has done a change, for this run or for an earlier one. */
export const isDone = ({ state, outcome }: { state: ChangeState; outcome: string | null }): boolean =>
  state === 'done' || isDoneEarlier({ outcome })

export const isDoneEarlier = ({ outcome }: { outcome: string | null }): boolean => outcome === 'doneEarlier'

/** Rejected, parked and fallen-back changes have failed; open ones have not. */
export const hasFailed = ({ state, outcome }: { state: ChangeState; outcome: string | null }): boolean =>
  state === 'rejected' ||
  state === 'parked' ||
  (state === 'staged' && (outcome === 'fellBack' || outcome === 'noEffect'))

/** Whether a change that is due was tried before, or may have been: a ledger that was restored does not know. */
export const mayBeTried = ({ state, outcome }: { state: ChangeState; outcome: string | null }): boolean =>
  hasFailed({ state, outcome }) || (state === 'staged' && outcome === 'stillOpen')

export type Outcome = keyof typeof outcomes

/** The sentence for an outcome; undefined for none, or one that this version does not know. */
export const sentenceFor = (outcome: string | null): string | undefined =>
  outcome !== null && isOutcome(outcome) ? outcomes[outcome] : undefined

const isOutcome = (name: string): name is Outcome => Object.hasOwn(outcomes, name)

/**
 * The outcome of a change that has one.
 * @throws {RangeError} it has none, or one that this version does not know
 */
export function recordedOutcome({ outcome }: { outcome: string | null }): Outcome {
  if (outcome === null || !isOutcome(outcome))
    throw new RangeError(`${outcome} is not an outcome of a change`)
  return outcome
}
