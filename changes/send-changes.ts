import type { Billing } from '../billing/client.ts'
import type { Ledger } from '../state/ledger.ts'
import { type BreakerStates, Breakers } from './breakers.ts'
import type { ChangeKind } from './change-kind.ts'
import type { ClaimJournal } from './claim-journal.ts'
import type { Limits } from './limits.ts'
import { Sender, totalsOf } from './sender.ts'

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

/**
 * Sends what a run has staged, in the order of its rows, several at a time, each claimed on the disk before its
 * request leaves. What an earlier attempt was sending when it ended becomes unknown; nothing is sent blindly twice.
 *
 * A second call for the same run first ends and awaits the one before. Throws what must stop a run: Unauthorized,
 * Forbidden, WrongModeError, Unreachable after eight tries, the errors of the state; in all cases after what was
 * on its way has ended.
 */
export type SendChanges = (options: SendOptions) => Promise<SendResult>

/** One for a process: it knows which runs are being sent. */
export function createSendChanges({
  ledger,
  now = Date.now,
}: {
  ledger: Ledger
  now?: () => number
}): SendChanges {
  const active = new Map<string, { stop: AbortController; ended: Promise<unknown> }>()
  return async (options) => {
    const stop = new AbortController()
    const before = active.get(options.run)
    before?.stop.abort(new Error('a new attempt of this run takes over'))
    const ended = (async () => {
      await before?.ended
      const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal
      return await sendPass({ ...options, ledger, now, stop: signal })
    })()
    const mine = { stop, ended: ended.catch(() => {}) }
    active.set(options.run, mine)
    try {
      return await ended
    } finally {
      if (active.get(options.run) === mine) active.delete(options.run)
    }
  }
}

/** One call, with what the process knows. */
export type Pass = SendOptions & { ledger: Ledger; now: () => number; stop: AbortSignal }

async function sendPass(pass: Pass): Promise<SendResult> {
  const { ledger, run, now } = pass
  const patch = { state: 'unknown', outcome: 'interrupted', unknownSince: now() } as const
  await ledger.moveAll({ run, from: 'sending', patch })
  const breakers = await Breakers.load({
    ledger,
    run,
    states: pass.breakers,
    maxFailureShare: () => pass.limits.maxFailureShare,
    ...(pass.trialWaitsMs && { trialWaitsMs: pass.trialWaitsMs }),
  })
  const sender = new Sender({ pass, breakers, totals: await totalsOf({ ledger, run }) })
  const ended = await sender.run()
  // Other lanes may have something that is due later, while this one's breaker is open.
  const exceptLanes = ended === 'breaker' ? breakers.closedLanes(now()) : []
  const times = [
    await ledger.nextDue({ run, exceptLanes }),
    ...(ended === 'breaker' ? [breakers.nextTrialAt] : []),
  ]
  const known = times.filter((time) => time !== undefined)
  return {
    ...sender.progress,
    ended,
    breakers: breakers.states,
    givenUp: breakers.givenUp,
    nextDueAt: known.length === 0 ? undefined : Math.min(...known),
  }
}
