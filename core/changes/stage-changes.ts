import type { Body } from '../billing/client.ts'
import type { KeySpace } from '../state/ledger/key-queries.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { NewChange, StageResult } from '../state/ledger/stage.ts'
import { bytesOf, maxBodyBytes } from './body.ts'
import type { ChangeKind } from './change-kind.ts'
import { BodyTooLargeError } from './errors.ts'
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
  closed?: { state: 'rejected' | 'dropped' | 'parked'; outcome: Outcome; error: string }
}

export interface StageOptions extends Omit<KeySpace, 'kind'> {
  ledger: Ledger
  run: string
  kind: ChangeKind
  changes: readonly ChangeToStage[]
}

/**
 * Stages changes of a run durably, about a thousand at a time. Changes that the run has already staged are left as they
 * are. A change whose key another change holds is not staged; it is returned with the change that holds the key.
 * @throws {BodyTooLargeError}
 */
export async function stageChanges({
  ledger,
  kind,
  changes,
  ...context
}: StageOptions): Promise<StageResult> {
  return await ledger.stage({
    ...context,
    kind: kind.name,
    repeats: kind.repeats,
    changes: changes.map((change) => toNewChange({ kind, change })),
  })
}

function toNewChange({ kind, change }: { kind: ChangeKind; change: ChangeToStage }): NewChange {
  const { body, existing, ...rest } = change
  const bytes = change.closed === undefined ? bytesOf(body) : 0
  if (bytes > maxBodyBytes) throw new BodyTooLargeError({ row: change.row, bytes, max: maxBodyBytes })
  const before = existing === undefined ? {} : { before: JSON.stringify({ ids: existing }) }
  return { ...rest, ...before, key: kind.keyOf(body), body: JSON.stringify(body) }
}
