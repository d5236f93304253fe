import { setTimeout as wait } from 'node:timers/promises'
import { sendWithinMs } from '../../billing/claimed-request.ts'
import type { Billing } from '../../billing/client.ts'
import type { OpenBreaker } from '../../runs/view/breaker.ts'
import type { ReportCounts } from '../../runs/view/counts.ts'
import type { RunWorkers } from '../../runs/workers.ts'
import type { FencingToken, SendLease } from '../../state/ledger/claims.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import type { ChangeKind } from '../change-kind.ts'
import { reconcileChanges, type ReconcileOptions } from '../reconcile/reconcile.ts'
import { rowsInDoubt, summarize } from '../report.ts'
import { Breakers, type BreakerStates } from './breaker.ts'
import { canaryResult, type CanarySize, markCanary } from './canary.ts'
import { sendOne } from './send-one.ts'
import { SendTally, type TallyOptions } from './tally.ts'

/** Why a round of sending, or a whole segment, ended. */
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

/** The bounds of a run. Read before every request, so a change to the object applies from then on. */
export interface Limits {
  /** Changes at once on their way to the service. As many answers may be recorded meanwhile. */
  concurrency: number
  /** The maximum number of changes tried in this run; undefined for all. */
  maxChanges?: number | undefined
  /** The run ends when more than this many have failed; undefined for no bound. */
  maxFailures?: number | undefined
  /** The share of the last outcomes that may fail before a breaker opens. */
  maxFailureShare: number
}

export const defaultLimits: Limits = { concurrency: 4, maxFailureShare: 0.5 }

/** What a run sends and how, from its plan and its limits. */
export type SendWork = Pick<ReconcileOptions, 'settleMs' | 'verifyMs' | 'attempts'> & {
  run: string
  kind: ChangeKind
  limits: Readonly<Limits>
  canarySize: CanarySize
  /** How long an open breaker waits before its first, second ... trial. Default 1, 2 and 4 minutes. */
  breakerWaitsMs?: readonly number[] | undefined
}

/** Input of one sending segment, from the workflow. */
export interface SendInput {
  /** How long to send before reporting back to the workflow. */
  seconds: number
  /** As the last segment of this run returned them; `{}` at the start. */
  breakers: BreakerStates
  /** The number of claims of the run as last reported to the workflow. */
  claims: number
  /** Only the canary. */
  canary?: boolean | undefined
  /** Only these rows. */
  rows?: readonly number[] | undefined
  /** Sends nothing more and only looks up what was sent. */
  lookupsOnly?: boolean | undefined
}

/** Result of one sending segment: counts, row numbers and times only. */
export interface SendStep {
  ended: SendEnd
  /** When the next change is due, by the ledger's clock; undefined if it takes a person or a new segment. */
  nextAt?: number
  /** When the segment ended, by the same clock: Temporal's may differ. */
  endedAt: number
  /** Keys of breakers that have given up: only a person closes them. */
  givenUp: string[]
  breakers: BreakerStates
  openBreakers: OpenBreaker[]
  claims: number
  counts: ReportCounts
  /** The first parked rows of which a person may say what became of them; absent if none is parked. */
  parkedRows?: number[]
  /** Of a canary: its rows that were sent, and the breaker keys of which all failed. */
  canary?: { rows: number[]; failed: string[] }
  /** Who sent; absent for a state in the data folder. */
  workers?: RunWorkers
}

/** What the sending itself knows of its step. */
type Sent = Omit<SendStep, 'claims' | 'workers'>

export type SendOptions = SendWork &
  Pick<TallyOptions, 'onProgress' | 'onDoubled'> &
  Pick<SendInput, 'breakers' | 'canary' | 'rows' | 'lookupsOnly'> & {
    ledger: Ledger
    /** Limited to the run's share of the rate (`billing.limited`). */
    billing: Billing
    /** The attempt's right to send. */
    right: SendRight
    /** When aborted, starts nothing more and awaits what is in flight. */
    signal: AbortSignal
  }

/** The result of one round of sending. */
export type RoundResult = SendTally['round'] & {
  ended: SendEnd
  /** When the next staged change may be sent, or the next trial of an open breaker; ms since 1970. */
  nextDueAt: number | undefined
}

/** Lost requests are looked up at least this often, also while others are being sent. */
const longestRoundMs = 5_000
/** Waits up to this long here for what is due soon, such as subscriptions that fell back: a timer of the workflow costs more. */
const shortWaitMs = 10_000
/** Rows per fetch: a fetch costs about as much as one claim. */
const feedRows = 64

/** The right of one attempt to send a run's changes. It is taken once: lost to another attempt, it is lost for good. */
export interface SendRight {
  /**
   * Takes the right at the first call; later calls make sure that the attempt still has it. What was being sent and has no
   * outcome becomes unknown.
   *
   * @throws {SupersededError} if another attempt has taken it since
   */
  hold(): Promise<FencingToken>
}

/**
 * The previous holder may still be running on another machine, and may send what it has claimed within `sendWithinMs`:
 * lookups wait that much longer.
 */
export function createSendRight({
  ledger,
  run,
  lease,
}: {
  ledger: Ledger
  run: string
  lease: SendLease
}): SendRight {
  let held: FencingToken | undefined
  return {
    hold: async () => {
      const leavesWithinMs = ledger.isShared ? sendWithinMs : 0
      const interrupted = (at: number) =>
        ({ state: 'unknown', outcome: 'interrupted', unknownSince: at + leavesWithinMs }) as const
      held = await ledger.becomeSender({ run, lease, now: ledger.now, interrupted, held })
      return held
    },
  }
}

/**
 * Sends what a run has staged, in row order, several at a time, each claimed on disk before its request leaves, and
 * reconciles what got no answer: due → breaker → claim → send → close; unknown → look up. Changes that an earlier attempt
 * was sending when it ended become unknown; nothing is sent blindly twice.
 *
 * @throws errors that must stop a run: Unauthorized, Forbidden, WrongModeError, Unreachable or SentTooLate for the eighth
 * time in a row, errors of the state and of the lookups; always after the requests in flight have ended
 */
export class Sending {
  readonly #options: SendOptions
  readonly #token: FencingToken
  readonly #breakers: Breakers
  readonly #tally: SendTally
  /** What was begun and has not ended, by id. */
  readonly #inFlight = new Map<number, { breakerKey: string; ended: Promise<void> }>()
  /** Those of them that the service has not done yet. The answers of as many others may be recorded meanwhile. */
  readonly #unanswered = new Set<number>()
  #progressed = Promise.withResolvers<void>()
  #feed: LedgerRow[] = []

  private constructor(options: SendOptions, own: { token: FencingToken; breakers: Breakers }) {
    this.#options = options
    this.#token = own.token
    this.#breakers = own.breakers
    this.#tally = new SendTally(options)
  }

  /** Takes the right to send. */
  static async begin(options: SendOptions): Promise<Sending> {
    const { ledger, run, limits } = options
    const token = await options.right.hold()
    const breakers = await Breakers.load({
      ledger,
      run,
      states: options.breakers,
      maxFailureShare: () => limits.maxFailureShare,
      waitsMs: options.breakerWaitsMs,
    })
    return new Sending(options, { token, breakers })
  }

  get breakers(): Pick<SendStep, 'breakers' | 'openBreakers' | 'givenUp'> {
    const { states, open, givenUp } = this.#breakers
    return { breakers: states, openBreakers: open, givenUp }
  }

  /** Alternates between sending and looking up, for `ms` or until nothing more is due soon. */
  async segment(ms: number): Promise<Sent> {
    const { ledger, signal, canary, lookupsOnly } = this.#options
    const deadline = performance.now() + ms
    const msLeft = () => Math.max(0, deadline - performance.now())
    await this.#tally.readCounts()
    for (;;) {
      const sent = lookupsOnly === true ? undefined : await this.send(Math.min(msLeft(), this.#roundMs))
      const looked = signal.aborted ? undefined : await this.#lookUp(msLeft())
      if (looked === undefined) return await this.#step('stopped')
      await this.#tally.readCounts()
      const isMoreDue = sent?.ended === 'timeUp' || (sent !== undefined && looked.reconciled.staged > 0)
      const nextAt = isMoreDue ? ledger.now() : earliest(looked.nextLookupAt, sent?.nextDueAt)
      if (nextAt === undefined) {
        const isThrough = sent?.ended !== 'finished' || canary !== true || !(await markCanary(this.#canary))
        if (isThrough) return await this.#step(sent?.ended ?? 'finished')
      }
      if (msLeft() === 0) return await this.#step('timeUp')
      const waitMs = Math.max(0, (nextAt ?? 0) - ledger.now())
      if (waitMs > Math.min(shortWaitMs, msLeft()))
        return await this.#step(sent?.ended === 'breaker' ? 'breaker' : 'waiting', nextAt)
      await wait(waitMs, undefined, { signal }).catch(() => undefined)
    }
  }

  /** Sends what is due, for `ms` or until there is a reason to end; then awaits what is in flight. */
  async send(ms: number): Promise<RoundResult> {
    const deadline = performance.now() + ms
    await this.#tally.beginRound()
    this.#feed = []
    const ended = await this.#sendUntil(deadline).catch((error: unknown): SendEnd => {
      this.#tally.error ??= error
      return 'stopped'
    })
    await Promise.all([...this.#inFlight.values()].map((sending) => sending.ended))
    if (this.#tally.error !== undefined) throw this.#tally.error
    return { ...this.#tally.round, ...(await this.#nextDue(ended)) }
  }

  get #canary() {
    return { ...this.#options, ...this.#options.canarySize }
  }

  /** Breakers must soon learn of failures that only a lookup shows. */
  get #roundMs(): number {
    const { kind, settleMs } = this.#options
    return kind.confirmedByLookup === true ? longestRoundMs : Math.max(longestRoundMs, settleMs)
  }

  get #only() {
    const { run, rows, canary } = this.#options
    return { run, rows, canary }
  }

  async #sendUntil(deadline: number): Promise<SendEnd> {
    for (;;) {
      const pauseMs = Math.min(this.#tally.pausedUntil, deadline) - performance.now()
      // While no request can leave.
      if (pauseMs > 0) await wait(pauseMs, undefined, { signal: this.#options.signal }).catch(() => {})
      const ended = this.#reasonToEnd(deadline) ?? (await this.#sendNext())
      if (ended !== undefined) return ended
    }
  }

  #reasonToEnd(deadline: number): SendEnd | undefined {
    const { signal, limits } = this.#options
    if (signal.aborted || this.#tally.error !== undefined) return 'stopped'
    if (performance.now() >= deadline) return 'timeUp'
    if (this.#tally.totals.failed > (limits.maxFailures ?? Infinity)) return 'maxFailures'
    return undefined
  }

  /** Begins one more change, or waits for one in flight. */
  async #sendNext(): Promise<SendEnd | undefined> {
    const { concurrency, maxChanges = Infinity } = this.#options.limits
    if (this.#unanswered.size >= concurrency || this.#inFlight.size >= 2 * concurrency)
      return await this.#awaitOne()
    const row = await this.#next()
    if (row === undefined)
      return this.#inFlight.size > 0 ? await this.#awaitOne() : await this.#whyNothingIsDue()
    if (row.sends === 0 && this.#tally.totals.tried >= maxChanges) {
      if (this.#inFlight.size === 0) return 'maxChanges'
      // A request in flight may fail to leave; its row is then due before this one and frees a place.
      this.#feed = []
      return await this.#awaitOne()
    }
    this.#begin(row)
    return undefined
  }

  async #awaitOne(): Promise<undefined> {
    await this.#progressed.promise
  }

  /** The next row that is due and that its breaker admits. */
  async #next(): Promise<LedgerRow | undefined> {
    const { ledger } = this.#options
    const busy = new Set([...this.#inFlight.values()].map(({ breakerKey }) => breakerKey))
    const closed = this.#breakers.closedKeys(busy)
    this.#feed = this.#feed.filter((row) => !closed.includes(row.breakerKey))
    if (this.#feed.length === 0)
      this.#feed = await ledger.due({
        ...this.#only,
        at: ledger.now(),
        exceptBreakerKeys: closed,
        exceptIds: [...this.#inFlight.keys()],
        limit: feedRows,
      })
    return this.#feed.shift()
  }

  async #whyNothingIsDue(): Promise<SendEnd | undefined> {
    const { ledger } = this.#options
    const [left] = await ledger.due({ ...this.#only, at: ledger.now(), limit: 1 })
    if (left === undefined) return 'finished'
    // The last change in flight may have closed a breaker since `#next` asked.
    const row = await this.#next()
    if (row === undefined) return 'breaker'
    this.#feed.unshift(row)
    return undefined
  }

  #begin(row: LedgerRow) {
    const { ledger, kind, billing, signal: stop } = this.#options
    const { breakerKey } = row
    const isTrial = this.#breakers.isOpen(breakerKey)
    this.#tally.begin(row)
    const onAnswer = () => this.#answered(row)
    const sender = this.#token
    const ended = sendOne({ ledger, sender, kind, billing, row, stop, onAnswer })
      .then(async (sent) => {
        // First: what an answer says must not be lost where the ledger cannot be read.
        this.#tally.count(row, sent)
        await this.#breakers.recordEnd({ key: breakerKey, isTrial })
      })
      .catch((error: unknown) => {
        this.#tally.error ??= error
      })
      .then(() => {
        this.#inFlight.delete(row.id)
        this.#answered(row)
      })
    this.#inFlight.set(row.id, { breakerKey, ended })
    this.#unanswered.add(row.id)
  }

  #answered({ id }: LedgerRow): void {
    this.#unanswered.delete(id)
    this.#progressed.resolve()
    this.#progressed = Promise.withResolvers()
  }

  async #nextDue(ended: SendEnd): Promise<Pick<RoundResult, 'ended' | 'nextDueAt'>> {
    const { ledger } = this.#options
    const nextDue = (exceptBreakerKeys: string[]) => ledger.nextDue({ ...this.#only, exceptBreakerKeys })
    if (ended === 'breaker') {
      // Changes of other breakers may become due while this one is open. Those beside a canary wait for its result.
      const due = await nextDue(this.#breakers.closedKeys(new Set()))
      return { ended, nextDueAt: earliest(due, this.#breakers.nextTrialAt) }
    }
    const due = ended === 'finished' ? await nextDue([]) : undefined
    return { ended: due === undefined ? ended : 'waiting', nextDueAt: due }
  }

  /** Undefined if it was stopped in the meantime. */
  async #lookUp(msLeft: number) {
    const { limits, signal, ...rest } = this.#options
    const timeBoxMs = Math.max(longestRoundMs, msLeft)
    try {
      return await reconcileChanges({ ...rest, concurrency: limits.concurrency, timeBoxMs, signal })
    } catch (error) {
      if (signal.aborted) return undefined
      throw error
    } finally {
      await this.#breakers.refresh()
    }
  }

  async #step(ended: SendEnd, nextAt?: number): Promise<Sent> {
    const { ledger, run, kind, canary } = this.#options
    const { counts } = await summarize({ ledger, run })
    return {
      ended,
      ...(nextAt !== undefined && { nextAt }),
      ...this.breakers,
      endedAt: ledger.now(),
      counts,
      ...(counts.parked > 0 && { parkedRows: await rowsInDoubt({ ledger, run, kind }) }),
      ...(canary === true && { canary: await canaryResult({ ledger, run }) }),
    }
  }
}

const earliest = (...times: (number | undefined)[]): number | undefined => {
  const known = times.filter((time) => time !== undefined)
  return known.length === 0 ? undefined : Math.min(...known)
}
