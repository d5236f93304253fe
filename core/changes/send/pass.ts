import type { Billing } from '../../billing/client.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import { type BreakerStates } from './breakers.ts'
import type { ClaimJournal } from '../claim-journal.ts'
import type { ChangeKind } from '../change-kind.ts'
import type { Limits } from './limits.ts'

/** One call, with what the process knows. */
export type Pass = SendOptions & { ledger: Ledger; now: () => number; stop: AbortSignal }

export interface SendOptions {
  run: string
  kind: ChangeKind
  /** With the run's share of the rate (`billing.limited`). */
  billing: Billing
  /** The run's, to which each claim is written before its request leaves. */
  journal: Pick<ClaimJournal, 'record'>
  limits: Readonly<Limits>
  /** As the last pass of this run returned them; `{}` at the start. */
  breakers: BreakerStates
  /** How long an open breaker waits before its first, second ... trial. Default 1, 2 and 4 minutes. */
  trialWaitsMs?: readonly number[]
  /** Only these rows (the canary). */
  rows?: readonly number[]
  /** Nothing more is begun after this long; what is on its way is awaited. */
  timeBoxMs: number
  /** Nothing more is begun; what is on its way is awaited. */
  signal?: AbortSignal
  /** Called after each change. */
  onProgress?: (progress: Progress) => void
}

export interface Progress {
  /** How many requests this pass began. */
  begun: number
  done: number
  failed: number
  unknown: number
}

export type SendEnd =
  /** Nothing is staged that is due: all was sent, or waits for `nextDueAt`. */
  | 'nothingDue'
  | 'timeUp'
  | 'stopped'
  /** What is left belongs to lanes whose breaker is open. */
  | 'breaker'
  | 'maxChanges'
  | 'maxFailures'

export interface SendResult extends Progress {
  ended: SendEnd
  /** To be handed to the next pass. A person opens a lane by `{ clearedAt: now, trials: 0 }`. */
  breakers: BreakerStates
  /** Lanes whose breaker tries no more: only a person opens them again. */
  givenUp: string[]
  /** When the next staged change may be sent, or the next trial of an open breaker; ms since 1970. */
  nextDueAt: number | undefined
}
