import type { z } from 'zod'
import type { WriteOptions } from '../billing/calls.ts'
import type { Billing, Body, Returned } from '../billing/client.ts'
import type { LedgerRow } from '../state/ledger/row.ts'
import type { Repeats } from '../state/ledger/stage.ts'
import type { Outcome } from './outcomes.ts'
import type { FoundRecords } from './kinds/find-records.ts'

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
 * One kind of change: how it is sent, identified and looked up. The rules that make sure it is sent once are the same
 * for all kinds and are in the other files of this room.
 *
 * A body holds the fields to send and, for a change to an existing record, that record's `id` (read-only in the
 * service, so never a field to send).
 */
export interface ChangeKind {
  readonly name: ChangeKindName
  /** Identifies the change in the ledger: the same key is never sent twice, across all runs. */
  keyOf(body: Body): string
  /** Whether a key that is done may be sent again without a person's request. */
  readonly repeats: Repeats
  /** One request, sent once. Resolves to undefined if the service answers without a body. */
  send(request: { billing: Billing; body: Body; options: WriteOptions }): Promise<Returned | undefined>
  /** The outcome of an answered request. */
  readonly answered: Outcome
  /** Schema of the answer, for kinds where only the answer shows whether the fields are stored as sent. */
  readonly stores?: z.ZodObject
  /**
   * How to reconcile a change with an unknown outcome: look it up; send it again, because twice is the same as once; or
   * park it for a person, because it cannot be looked up and must not be repeated.
   */
  whenUnknown(body: Body): 'lookUp' | 'sendAgain' | 'park'
  /**
   * Checks the record just before the request, for kinds where a change may have become unnecessary or impossible since
   * it was staged. `last`: the facts of the last check or lookup, as JSON text of the kind; null before the first.
   * `attempts`: how many of its requests may have taken effect; the claim after this check succeeds only if that
   * number has not changed.
   */
  checkBefore?(context: LookupContext & { last: string | null; attempts: number }): Promise<CheckResult>
  /** Looks up the outcome of a request; required for kinds whose `whenUnknown` returns `lookUp`. */
  lookUp?(context: LookupRequest): Promise<LookupResult>
  /** All records under the key of a body, for kinds whose list can be filtered by it. */
  findUnderKey?(context: LookupContext): Promise<FoundRecords>
  /** Looks up a record that the list shows, in the same way as `lookUp`; undefined if the list is empty. */
  findListed?(
    options: Pick<LookupContext, 'billing' | 'signal'>,
  ): Promise<{ id: string; found: boolean } | undefined>
  /** The answer says only that the request was accepted; the outcome is looked up, as after a lost reply. */
  readonly confirmedByLookup?: true
  /**
   * Whether a person may decide the outcome of a parked change: it may have been done, and nothing shows whether it was.
   * Default: each one.
   */
  readonly isInDoubt?: (row: Pick<LedgerRow, 'sends' | 'answeredAt' | 'outcome'>) => boolean
  /** The answer already shows that the change failed: the breaker counts it before the lookup. */
  readonly failedImmediately?: (answer: Returned) => boolean
  /** A 404 for a change that was sent before means that the first request succeeded. */
  readonly notFoundIsDone?: true
  /** Traits by which a canary picks different changes. */
  traitsOf(body: Body): Traits
}

export interface Traits {
  /** Changes with the same signature are alike (a document type). */
  signature: string
  lines: number
  /** A decimal text. */
  amount: string
}

export interface LookupContext {
  billing: Billing
  body: Body
  signal: AbortSignal | undefined
}

export type CheckResult =
  /** Send it; the facts are kept in the ledger, to compare them with a later lookup. */
  | { proceed: unknown }
  /** Nothing is left to do, it needs a person, or the record is gone. */
  | { instead: 'done' | 'parked' | 'dropped'; outcome: Outcome; message: string; facts?: unknown }
  /** This run must not send it; another one may. */
  | { skip: string; facts?: unknown }

export interface LookupRequest extends LookupContext {
  /** The facts of the check before sending, or the ids that existed at staging; JSON text as the kind wrote it. */
  before: string | null
  /** Ids under the same key that belong to other changes; null for a change done under an unknown id. */
  others: readonly (string | null)[]
}

/** `facts`: fields of the record for the report; each kind has its own. */
export type LookupResult =
  | {
      result: 'done'
      id: string
      /** The others, if the service has done it more than once. */
      otherIds?: readonly string[]
      outcome: Outcome
      message?: string
      facts?: unknown
    }
  /** The filter worked, and the record is not among those returned. */
  | { result: 'absent' }
  /** The request had no effect, or none that lasted: this attempt failed. */
  | { result: 'fellBack'; outcome: Outcome; message: string; facts?: unknown }
  /** Neither found nor proven absent: needs a person. */
  | { result: 'unclear'; outcome: Outcome; message: string }
