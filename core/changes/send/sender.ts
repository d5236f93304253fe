import { setTimeout as wait } from 'node:timers/promises'
import type { Billing } from '../../billing/client.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import type { FencingToken } from '../../state/ledger/claims.ts'
import type { ChangeKind } from '../change-kind.ts'
import type { ClaimJournal } from '../claim-journal.ts'
import { hasFailed } from '../outcomes.ts'
import type { OpenBreaker } from '../../runs/view/breaker.ts'
import { Breakers, type BreakerStates } from './run-breakers.ts'
import type { Limits } from './limits.ts'
import { type SendResult, sendOne } from './send-one.ts'
import type { SendRight } from './send-right.ts'

/** Why a round, or a whole segment, of sending ended. */
export type SendEnd =
  /** Nothing is left to send. */
  | 'finished'
  /** The remaining changes are due later. */
  | 'waiting'
  | 'timeUp'
  | 'stopped'
  /** The breakers of the remaining changes are open. */
  | 'breaker'
  | 'maxChanges'
  | 'maxFailures'

export interface RoundOptions {
  ledger: Ledger
  run: string
  kind: ChangeKind
  /** Limited to the run's share of the rate (`billing.limited`). */
  billing: Billing
  /** The run's journal; each claim is written to it before its request leaves. */
  journal: Pick<ClaimJournal, 'record' | 'claimsOf'>
  /** The attempt's right to send. */
  right: SendRight
  /** Read before every request, so a change to the object applies from then on. */
  limits: Readonly<Limits>
  /** As the last round of this run returned them; `{}` at the start. */
  breakers: BreakerStates
  /** How long an open breaker waits before its first, second ... trial. Default 1, 2 and 4 minutes. */
  breakerWaitsMs?: readonly number[] | undefined
  /** Only these rows (the canary). */
  rows?: readonly number[] | undefined
  /** After this long, starts nothing more and awaits what is in flight. */
  ms: number
  /** When aborted, starts nothing more and awaits what is in flight. */
  signal: AbortSignal
  /** Called after each change. */
  onProgress?: (progress: RoundProgress) => void
  /** Called when an answer shows that the service has done a change more than once. */
  onDoubled?: ((doubled: Doubled) => void) | undefined
  now?: () => number
}

/** A change that the service has done more than once, with the ids it has there. */
export interface Doubled {
  row: number
  ids: readonly string[]
}

interface RoundProgress {
  /** How many requests this round began. */
  begun: number
  done: number
  failed: number
  unknown: number
}

export interface RoundResult extends RoundProgress {
  ended: SendEnd
  /** For the next round. A person closes a breaker by `{ clearedAt: now, trials: 0 }`. */
  breakers: BreakerStates
  open: OpenBreaker[]
  /** Keys of breakers that have given up: only a person closes them. */
  givenUp: string[]
  /** When the next staged change may be sent, or the next trial of an open breaker; ms since 1970. */
  nextDueAt: number | undefined
}

/**
 * Sends the staged changes of a run that are due, in row order, several at a time, each claimed on disk before its
 * request leaves. Changes that an earlier attempt was sending when it ended become unknown; nothing is sent blindly
 * twice.
 * @throws errors that must stop a run: Unauthorized, Forbidden, WrongModeError, Unreachable or SentTooLate for the eighth
 * time in a row, errors of the state; always after the requests in flight have ended
 */
export async function sendRound(options: RoundOptions): Promise<RoundResult> {
  const { ledger, run, limits, breakerWaitsMs, rows, now = ledger.now } = options
  const token = await options.right.hold()
  const breakers = await Breakers.load({
    ledger,
    run,
    states: options.breakers,
    maxFailureShare: () => limits.maxFailureShare,
    ...(breakerWaitsMs && { trialWaitsMs: breakerWaitsMs }),
  })
  const sender = new Sender({ options, token, breakers, totals: await totalsOf({ ledger, run }) })
  const ended = await sender.run()
  const result = {
    ...sender.progress,
    breakers: breakers.states,
    open: breakers.open,
    givenUp: breakers.givenUp,
  }
  if (ended === 'breaker') {
    const at = now()
    // Changes of other breakers may become due while this one is open. Those beside a canary wait for its result.
    const due = await ledger.nextDue({ run, rows, exceptBreakerKeys: breakers.closedKeys(at) })
    return { ...result, ended, nextDueAt: earliest(due, breakers.nextTrialAt(at)) }
  }
  const due =
    ended === 'finished' && rows === undefined
      ? await ledger.nextDue({ run, exceptBreakerKeys: [] })
      : undefined
  return { ...result, ended: due === undefined ? ended : 'waiting', nextDueAt: due }
}

export const earliest = (...times: (number | undefined)[]): number | undefined => {
  const known = times.filter((time) => time !== undefined)
  return known.length === 0 ? undefined : Math.min(...known)
}

/** Rows per fetch: a fetch costs about as much as one claim. */
const feedRows = 64
const maxNotLeft = 8
const longestPauseMs = 30_000

/** Counts for the bounds of the whole run. */
interface Totals {
  tried: number
  failed: number
}

async function totalsOf({ ledger, run }: { ledger: Ledger; run: string }): Promise<Totals> {
  const totals: Totals = { tried: 0, failed: 0 }
  for (const { state, outcome, tried, refused } of await ledger.counts({ run })) {
    totals.tried += tried + refused
    if (hasFailed({ state, outcome })) totals.failed += tried
  }
  return totals
}

/** Keeps as many changes in flight as the bounds allow, until there is a reason to end. */
class Sender {
  readonly progress: RoundProgress = { begun: 0, done: 0, failed: 0, unknown: 0 }
  readonly #options: RoundOptions
  readonly #token: FencingToken
  readonly #breakers: Breakers
  readonly #totals: Totals
  readonly #deadline: number
  /** What was begun and has not ended, by id. */
  readonly #inFlight = new Map<number, Promise<void>>()
  /** Those of them that the service has not done yet. The answers of as many others may be recorded meanwhile. */
  readonly #unanswered = new Set<number>()
  #progressed = Promise.withResolvers<void>()
  readonly #now: () => number
  #feed: LedgerRow[] = []
  #pausedUntil = 0
  #notLeft = 0
  #error: unknown

  constructor(given: { options: RoundOptions; token: FencingToken; breakers: Breakers; totals: Totals }) {
    const { options, token, breakers, totals } = given
    this.#options = options
    this.#token = token
    this.#breakers = breakers
    this.#now = options.now ?? options.ledger.now
    this.#totals = totals
    this.#deadline = performance.now() + options.ms
  }

  async run(): Promise<SendEnd> {
    const ended = await this.#untilEnd().catch((error: unknown): SendEnd => {
      this.#error ??= error
      return 'stopped'
    })
    await Promise.all(this.#inFlight.values())
    if (this.#error !== undefined) throw this.#error
    return ended
  }

  async #untilEnd(): Promise<SendEnd> {
    for (;;) {
      await this.#pause()
      const ended = this.#reasonToEnd() ?? (await this.#step())
      if (ended !== undefined) return ended
    }
  }

  #reasonToEnd(): SendEnd | undefined {
    const { signal, limits } = this.#options
    if (signal.aborted || this.#error !== undefined) return 'stopped'
    if (performance.now() >= this.#deadline) return 'timeUp'
    if (this.#totals.failed > (limits.maxFailures ?? Infinity)) return 'maxFailures'
    return undefined
  }

  /** Starts one more change, or waits for one in flight. */
  async #step(): Promise<SendEnd | undefined> {
    const { inFlight } = this.#options.limits
    if (this.#unanswered.size >= inFlight || this.#inFlight.size >= 2 * inFlight)
      return await this.#awaitOne()
    const row = await this.#next()
    if (row === undefined)
      return this.#inFlight.size > 0 ? await this.#awaitOne() : await this.#whyNothingIsDue()
    if (row.sends === 0 && this.#totals.tried >= (this.#options.limits.maxChanges ?? Infinity)) {
      if (this.#inFlight.size === 0) return 'maxChanges'
      // One in flight may not leave: it is then due again, before this one, and may not count.
      this.#feed = []
      return await this.#awaitOne()
    }
    this.#begin(row)
    return undefined
  }

  async #awaitOne(): Promise<undefined> {
    await this.#progressed.promise
  }

  async #next(): Promise<LedgerRow | undefined> {
    const { ledger, run, rows } = this.#options
    const closed = this.#breakers.closedKeys(this.#now())
    this.#feed = this.#feed.filter((row) => !closed.includes(row.breakerKey))
    if (this.#feed.length === 0)
      this.#feed = await ledger.due({
        run,
        at: this.#now(),
        ...(rows && { rows }),
        exceptBreakerKeys: closed,
        exceptIds: [...this.#inFlight.keys()],
        limit: feedRows,
      })
    return this.#feed.shift()
  }

  async #whyNothingIsDue(): Promise<SendEnd | undefined> {
    const { ledger, run, rows } = this.#options
    const [left] = await ledger.due({ run, at: this.#now(), ...(rows && { rows }), limit: 1 })
    if (left === undefined) return 'finished'
    // The last change in flight may have closed a breaker since `#next` asked.
    const row = await this.#next()
    if (row === undefined) return 'breaker'
    this.#feed.unshift(row)
    return undefined
  }

  #begin(row: LedgerRow) {
    const { ledger, kind, billing, journal, signal } = this.#options
    const now = this.#now
    const breaker = this.#breakers.get(row.breakerKey)
    breaker.start()
    this.progress.begun += 1
    if (row.sends === 0) this.#totals.tried += 1
    const sender = this.#token
    const onAnswer = () => this.#answered(row)
    const sending = sendOne({ ledger, sender, kind, billing, journal, row, now, stop: signal, onAnswer })
      .then((sent) => {
        breaker.record({ event: sent.event, at: now() })
        this.#count(row, sent)
      })
      .catch((error: unknown) => (this.#error ??= error))
      .then(() => {
        this.#inFlight.delete(row.id)
        this.#answered(row)
      })
    this.#inFlight.set(row.id, sending)
    this.#unanswered.add(row.id)
  }

  #answered({ id }: LedgerRow): void {
    this.#unanswered.delete(id)
    this.#progressed.resolve()
    this.#progressed = Promise.withResolvers()
  }

  #count(row: LedgerRow, { event, claimed, refused = false, error, notLeft, doubled }: SendResult) {
    if (doubled !== undefined) this.#options.onDoubled?.({ row: row.row, ids: doubled })
    if (event === 'success') this.progress.done += 1
    if (event === 'failure') {
      this.progress.failed += 1
      this.#totals.failed += 1
    }
    if (event === 'fault' || event === 'pending') this.progress.unknown += 1
    if (event === 'notSent' && row.sends === 0 && !refused) this.#totals.tried -= 1
    if (notLeft !== undefined) this.#notLeft += 1
    else if (claimed) this.#notLeft = 0
    if (this.#notLeft > 0)
      this.#pausedUntil = performance.now() + Math.min(longestPauseMs, 500 * 2 ** this.#notLeft)
    if (error !== undefined) this.#error ??= error
    if (this.#notLeft >= maxNotLeft) this.#error ??= notLeft
    this.#options.onProgress?.({ ...this.progress })
  }

  /** Waits before the next try while no request can leave: 1, 2, 4 ... 30 s. */
  async #pause(): Promise<void> {
    const ms = Math.min(this.#pausedUntil, this.#deadline) - performance.now()
    if (ms > 0) await wait(ms, undefined, { signal: this.#options.signal }).catch(() => {})
  }
}
