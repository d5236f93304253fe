import type { z } from 'zod'
import type { Billing, Body, Returned, WriteOptions } from '../billing/client.ts'
import type { Repeats } from '../state/ledger/stage.ts'
import type { Outcome } from './outcomes.ts'

export const changeKindNames = [
  'create-retention',
  'create-addon',
  'create-product',
  'update-contact',
  'update-subscription',
  'delete-order',
  'resume-subscription',
] as const
export type ChangeKindName = (typeof changeKindNames)[number]

/**
 * One sort of change: how it is made, sent and looked up. Everything else about sending once is the same for all
 * kinds and lies in this room's other files.
 *
 * A body is what the ledger keeps of a change: the fields to send and, where the change is about a record that
 * exists, that record's `id` (which is read-only in the service and so never a field to send).
 */
export interface ChangeKind {
  readonly name: ChangeKindName
  /** What the ledger holds the change by: the same key is not sent twice, over all runs. */
  keyOf(body: Body): string
  /** Whether a key that is done may be done once more without a person saying so. */
  readonly repeats: Repeats
  /** One request, sent once. Undefined where the service answers without a body. */
  send(request: { billing: Billing; body: Body; options: WriteOptions }): Promise<Returned | undefined>
  /** The outcome when the service has answered. */
  readonly answered: Outcome
  /** What the fields of an answer hold, where the answer is all that tells whether they are stored as sent. */
  readonly stores?: z.ZodObject
  /**
   * What is to be done about one whose fate is not known: look it up; send it again, because twice is the same as
   * once; or leave it to a person, because it can't be looked up and twice is not the same.
   */
  whenUnknown(body: Body): 'lookUp' | 'sendAgain' | 'park'
  /**
   * Looks just before the request, where a change may have become needless or impossible since it was staged.
   * `last`: what was seen of it before, as JSON text of the kind; null before the first look. `attempts`: how many
   * of its requests may have taken effect; the claim after this look succeeds only while that is still so.
   */
  lookBefore?(look: LookBefore & { last: string | null; attempts: number }): Promise<SeenBefore>
  /** Looks what became of it; there for every kind that can answer `lookUp`. */
  lookUp?(look: LookUp): Promise<Seen>
  /** Looks up a record that the list shows in the same way; undefined where the list shows none. */
  findListed?(
    options: Pick<LookBefore, 'billing' | 'signal'>,
  ): Promise<{ id: string; found: boolean } | undefined>
  /** The answer says only that the request was taken: what became of it is settled by a look, like a lost one. */
  readonly confirmedByLookup?: true
  /** The answer itself shows already that it did not last: the breaker hears of it before the look. */
  readonly fellAtOnce?: (answer: Returned) => boolean
  /** A 404 for a change that was sent before is what success looks like. */
  readonly goneIsDone?: true
  /** What tells changes apart for a canary. */
  traitsOf(body: Body): Traits
}

export interface Traits {
  /** Changes with the same signature are alike (a document type). */
  signature: string
  lines: number
  /** A decimal text. */
  amount: string
}

export interface LookBefore {
  billing: Billing
  body: Body
  signal: AbortSignal | undefined
}

export type SeenBefore =
  /** Send it; the facts are kept in the ledger, to compare with what a later look sees. */
  | { go: unknown }
  /** Nothing is left to do, it is for a person, or it is no longer there to be changed. */
  | { instead: 'done' | 'parked' | 'dropped'; outcome: Outcome; words: string; saw?: unknown }
  /** The run is not to send it; another one may. */
  | { left: string; saw?: unknown }

export interface LookUp extends LookBefore {
  /** The facts of the look before, or the ids that were there at staging; JSON text as the kind wrote it. */
  before: string | null
  /** Ids under the same key that belong to other changes; null for a change that is done under an unknown id. */
  others: readonly (string | null)[]
}

/** `saw`: facts for the report, in the words of the kind. */
export type Seen =
  | { seen: 'done'; id: string; outcome: Outcome; words?: string; saw?: unknown }
  /** Every record that came back carries what was asked for, and this one is not among them. */
  | { seen: 'absent' }
  /** The request had no effect, or none that lasted: the attempt is used up. */
  | { seen: 'fellBack'; outcome: Outcome; words: string; saw?: unknown }
  /** Neither there nor absent: a person must look. */
  | { seen: 'unclear'; outcome: Outcome; words: string }
