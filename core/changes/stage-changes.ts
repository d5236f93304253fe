import type { Body } from '../billing/client.ts'
import type { NewChange } from '../state/ledger/stage.ts'
import { maxBodyBytes } from './body.ts'
import type { ChangeKind } from './change-kind.ts'
import { ChangeError } from './errors.ts'
import type { Outcome } from './outcomes.ts'

/** A change that an import or a recovery requests. */
export interface ChangeToStage {
  /** Its place in the run, from 1. */
  row: number
  /** Numbers as `parseLossless` returns them, so that all digits are sent. */
  body: Body
  /** Changes with the same key share a canary and a breaker. Default: one for the whole run. */
  breakerKey?: string
  notBefore?: number
  /** Requests of earlier runs that may have taken effect and count here too; see `attemptsUsed`. */
  attemptsBefore?: number
  /** Requested by a person: send again although it is done. */
  sendAgain?: boolean
  /** Ids that the service already has under the same key; they do not belong to this change. */
  existing?: readonly string[]
  /** The change is reported but not sent. */
  closed?: {
    state: 'rejected' | 'dropped' | 'parked'
    outcome: Outcome
    error: string
    /** The id under which the service has it already. */
    answerId?: string | null
  }
}

/** The same with its key, and with its body as JSON text. */
export interface KeyedChange extends Omit<ChangeToStage, 'body'> {
  key: string
  /** Exactly as it will be sent. */
  body: string
}

export const withKey = ({ kind, change }: { kind: ChangeKind; change: ChangeToStage }): KeyedChange => ({
  ...change,
  key: kind.keyOf(change.body),
  body: JSON.stringify(change.body),
})

/**
 * The change as the ledger stages it.
 * @throws {ChangeError} its body is larger than any that is sent
 */
export function toNewChange({ existing, ...change }: KeyedChange): NewChange {
  const { row, body, closed } = change
  const bytes = closed === undefined ? Buffer.byteLength(body) : 0
  if (bytes > maxBodyBytes) {
    const [size, limit] = [bytes, maxBodyBytes].map((number) => number.toLocaleString('en'))
    const text = `row ${row} makes a request of ${size} bytes; at most ${limit} are sent.`
    throw new ChangeError('BodyTooLargeError', text)
  }
  return { ...change, ...(existing && { before: JSON.stringify({ ids: existing }) }) }
}
