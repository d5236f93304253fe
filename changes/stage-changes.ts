import type { Body } from '../billing/client.ts'
import type { KeySpace } from '../state/key-reads.ts'
import type { Ledger } from '../state/ledger.ts'
import type { NewChange, StageResult } from '../state/stage.ts'
import type { ChangeKind } from './change-kind.ts'
import type { Outcome } from './outcomes.ts'

/** A change as an import or a recovery asks for it. */
export interface ChangeToStage {
  /** Its place in the run, from 1. */
  row: number
  /** Numbers as `parseLossless` gives them, so that they leave digit for digit. */
  body: Body
  /** What canary and breaker are kept for; one for the whole run where it is left out. */
  lane?: string
  notBefore?: number
  /** Requests of earlier runs that may have taken effect and count here too; see `attemptsUsed`. */
  attemptsBefore?: number
  /** Asked for by a person: once more, although it is done. */
  sendAgain?: boolean
  /** Ids that the service already has under the same key: they are not this change. */
  existing?: readonly string[]
  /** It is not to be sent, and the report says why. */
  closed?: { state: 'rejected' | 'dropped' | 'parked'; outcome: Outcome; error: string }
}

export interface StageOptions extends Omit<KeySpace, 'kind'> {
  ledger: Ledger
  run: string
  kind: ChangeKind
  changes: readonly ChangeToStage[]
}

/**
 * Stages changes of a run durably, some thousand at a time. What is already staged by the run is left as it is;
 * what another change holds the key of is not staged, and given back with the change that holds it.
 */
export function stageChanges({ ledger, kind, changes, ...where }: StageOptions): Promise<StageResult> {
  return ledger.stage({
    ...where,
    kind: kind.name,
    repeats: kind.repeats,
    changes: changes.map((change) => toNewChange({ kind, change })),
  })
}

function toNewChange({ kind, change }: { kind: ChangeKind; change: ChangeToStage }): NewChange {
  const { body, existing, ...rest } = change
  const before = existing === undefined ? {} : { before: JSON.stringify({ ids: existing }) }
  return { ...rest, ...before, key: kind.keyOf(body), body: JSON.stringify(body) }
}
