import { setTimeout as wait } from 'node:timers/promises'
import type { Billing } from '../../billing/client.ts'
import type { ReportCounts } from '../../runs/view/counts.ts'
import type { FencingToken } from '../../state/ledger/claims.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import { lookupAt, type Reconciling, reconcileOne } from '../reconcile.ts'
import { rowsInDoubt, summarize } from '../report.ts'
import { Breakers } from './breaker.ts'
import { canaryResult, type CanarySize, markCanary } from './canary.ts'
import { sendOne } from './send-one.ts'
import type { SendEnd, SendInput, SendStep } from './step.ts'
import { Tally } from './tally.ts'

/** The bounds of a run. Read before every request, so a change to the object applies from then on. */
export interface Limits {
  /** Sends and lookups at once on their way to the service. As many answers may be recorded meanwhile. */
  concurrency: number
  /** The maximum number of changes tried in this run; undefined for all. */
  maxChanges?: number | undefined
  /** The run ends when more than this many have failed; undefined for no bound. */
  maxFailures?: number | undefined
  /** The share of the last outcomes that may fail before a breaker opens. */
  maxFailureShare?: number | undefined
}

const defaultFailureShare = 0.5

/** The sending side of a run's plan and limits: which changes it sends, and how. */
export interface SendWork extends Pick<Reconciling, 'run' | 'kind' | 'settleMs' | 'verifyMs' | 'attempts'> {
  limits: Readonly<Limits>
  canarySize: CanarySize
  /** How long an open breaker waits before its first, second ... trial. Default 1, 2 and 4 minutes. */
  breakerWaitsMs?: readonly number[] | undefined
}

/** A change that the service has done more than once, with the ids it has there. */
export interface Doubled {
  row: number
  ids: readonly string[]
}

export interface SegmentOptions
  extends SendWork, Pick<SendInput, 'breakers' | 'canary' | 'rows' | 'lookupsOnly'> {
  ledger: Ledger
  /** Limited to the run's share of the rate (`billing.limited`). */
  billing: Billing
  /** The attempt's right to send: see `takeRight`. */
  sender: FencingToken
  /** How long sends and lookups may begin; Infinity: until nothing is left, however late it is due. */
  ms: number
  /** When aborted, starts nothing more and awaits what is in flight. */
  signal: AbortSignal
  /** Called with the current counts. */
  onProgress?: (counts: ReportCounts) => void
  /** Called when an answer shows that the service has done a change more than once. */
  onDoubled?: ((doubled: Doubled) => void) | undefined
  /** Called each time that an outcome could not be recorded, because the store is away. */
  onAway?: (() => void) | undefined
}

/** Waits up to this long here for what is due soon, such as subscriptions that fell back: a timer of the workflow costs more. */
const shortWaitMs = 10_000
/** Rows per fetch: a fetch costs about as much as one claim. */
const feedRows = 64
const maxNotLeft = 8
const longestPauseMs = 30_000
/** A timer of any length that Node takes. */
const longestWaitMs = 3_600_000

/**
 * Sends what a run has staged, in row order, several at a time, each claimed on disk before its request leaves, and looks
 * up what got no answer, until the time is up, it is stopped or nothing more is due soon. Nothing is sent blindly twice.
 *
 * @throws errors that must stop a run: Unauthorized, Forbidden, WrongModeError, Unreachable or SentTooLate for the eighth
 * time in a row, errors of the state and of the lookups; always after the requests in flight have ended
 */
export async function runSegment(options: SegmentOptions): Promise<Omit<SendStep, 'claims'>> {
  const { ledger, run, limits, breakerWaitsMs: waitsMs } = options
  const maxFailureShare = () => limits.maxFailureShare ?? defaultFailureShare
  const breakers = await Breakers.load({ ledger, run, states: options.breakers, maxFailureShare, waitsMs })
  return await new Segment(options, { breakers, tally: await Tally.load(options) }).run()
}

/**
 * Why nothing can begin now; `busy`: not before something in flight has ended, `paused`: no request can leave, `none`: none is
 * due.
 */
type Idle = 'busy' | 'paused' | 'none' | 'maxChanges' | 'maxFailures'

class Segment {
  readonly #options: SegmentOptions
  readonly #breakers: Breakers
  readonly #tally: Tally
  readonly #deadline: number
  /** The sends and lookups that were begun and have not ended, by id. */
  readonly #inFlight = new Map<number, { breakerKey: string; isSend: boolean; ended: Promise<void> }>()
  /** Those of them that the service has not answered yet. The answers of as many others may be recorded meanwhile. */
  readonly #unanswered = new Set<number>()
  #progressed = Promise.withResolvers<void>()
  #feed: LedgerRow[] = []
  /** The pass over the unknown rows; another one begins when a lookup is due. */
  #pass: AsyncGenerator<LedgerRow> | undefined
  #nextLookupAt = 0
  /** Whether a change of the run is done that a lookup must find. */
  #hasControl = false
  /** How many requests in a row could not leave, and when, by `performance.now()`, the next one may try. */
  #notLeft = 0
  #pausedUntil = 0
  /** Why the segment must end. */
  #error: unknown

  constructor(options: SegmentOptions, own: { breakers: Breakers; tally: Tally }) {
    this.#options = options
    this.#breakers = own.breakers
    this.#tally = own.tally
    this.#deadline = performance.now() + options.ms
  }

  async run() {
    const { ledger, run, kind, canary } = this.#options
    const end = await this.#untilEnd().catch((error: unknown) => {
      this.#error ??= error
    })
    await Promise.all([...this.#inFlight.values()].map(({ ended }) => ended))
    if (end === undefined || this.#error !== undefined) throw this.#error
    const { counts } = await summarize({ ledger, run })
    return {
      ...end,
      ...this.#breakers.report,
      endedAt: ledger.now(),
      counts,
      ...(counts.parked > 0 && { parkedRows: await rowsInDoubt({ ledger, run, kind }) }),
      ...(canary === true && { canary: await canaryResult({ ledger, run }) }),
    }
  }

  async #untilEnd(): Promise<Pick<SendStep, 'ended' | 'nextAt'>> {
    const { ledger, signal, ms } = this.#options
    this.#options.onProgress?.(this.#tally.counts)
    for (;;) {
      if (signal.aborted || this.#error !== undefined) return { ended: 'stopped' }
      if (performance.now() >= this.#deadline) return { ended: 'timeUp' }
      const progress = this.#progressed.promise
      const isAlone = this.#inFlight.size === 0
      const idle = await this.#beginNext()
      if (idle === undefined) continue
      const untilLookup = idle === 'busy' ? Infinity : this.#nextLookupAt - ledger.now()
      if (idle === 'paused')
        await this.#waitFor(progress, Math.min(untilLookup, this.#pausedUntil - performance.now()))
      // What has ended meanwhile may have changed what is due.
      else if (!isAlone) await this.#waitFor(progress, untilLookup)
      else {
        const { ended, nextAt } = await this.#endOf(idle)
        if (nextAt === undefined) {
          if (ended !== 'finished' || !(await this.#choseMoreCanary())) return { ended }
          continue
        }
        const waitMs = nextAt - ledger.now()
        const mayWaitMs = ms === Infinity ? ms : Math.min(shortWaitMs, this.#deadline - performance.now())
        if (waitMs > mayWaitMs) return { ended, nextAt }
        await this.#waitFor(progress, waitMs)
      }
    }
  }

  /** Waits for something in flight, until the deadline or a stop at the latest. */
  async #waitFor(progress: Promise<void>, ms: number): Promise<void> {
    const timer = new AbortController()
    const signal = AbortSignal.any([this.#options.signal, timer.signal])
    const untilMs = Math.max(0, Math.min(ms, this.#deadline - performance.now(), longestWaitMs))
    await Promise.race([progress, wait(untilMs, undefined, { signal }).catch(() => undefined)])
    timer.abort()
  }

  /** Begins the next lookup that is due, or else the next send; returns why there is none. */
  async #beginNext(): Promise<Idle | undefined> {
    const { concurrency } = this.#options.limits
    if (this.#unanswered.size >= concurrency || this.#inFlight.size >= 2 * concurrency) return 'busy'
    if (await this.#needsControl()) {
      const idle = await this.#beginSend()
      if (idle === undefined) return undefined
      if (this.#sends.length > 0) return 'busy'
      return (await this.#beginLookUp()) ? undefined : idle
    }
    // Breakers must soon learn of failures that only a lookup shows.
    return (await this.#beginLookUp()) ? undefined : await this.#beginSend()
  }

  /** Whether a lookup that finds nothing would prove nothing, while a change is to be sent that could be its control. */
  async #needsControl(): Promise<boolean> {
    const { ledger, run, kind, lookupsOnly } = this.#options
    if (lookupsOnly === true || kind.confirmedByLookup === true) return false
    this.#hasControl ||= (await ledger.lastDone({ run })) !== undefined
    return !this.#hasControl
  }

  async #beginLookUp(): Promise<boolean> {
    const row = await this.#nextUnknown()
    if (row !== undefined) this.#begin(row, { isSend: false, work: () => this.#lookUp(row) })
    return row !== undefined
  }

  async #beginSend(): Promise<Idle | undefined> {
    const { limits, lookupsOnly } = this.#options
    const { maxChanges = Infinity, maxFailures = Infinity } = limits
    if (lookupsOnly === true) return 'none'
    if (performance.now() < this.#pausedUntil) return 'paused'
    if (this.#tally.failed > maxFailures) return 'maxFailures'
    const row = await this.#nextStaged()
    if (row === undefined) return 'none'
    if (row.sends === 0 && this.#tally.tried >= maxChanges) {
      // A request in flight may fail to leave; its row is then due before this one and frees a place.
      this.#feed = []
      return 'maxChanges'
    }
    this.#begin(row, { isSend: true, work: () => this.#send(row) })
    return undefined
  }

  /** The next unknown row whose lookup is due. */
  async #nextUnknown(): Promise<LedgerRow | undefined> {
    const { ledger, run } = this.#options
    if (this.#pass === undefined) {
      if (ledger.now() < this.#nextLookupAt) return undefined
      this.#nextLookupAt = Infinity
      this.#pass = ledger.rows({ run, state: 'unknown' })
    }
    for (;;) {
      const next = await this.#pass.next()
      if (next.done === true) {
        this.#pass = undefined
        return undefined
      }
      if (this.#inFlight.has(next.value.id)) continue
      if (!this.#isLookupDue(next.value)) continue
      // It may have been looked up since its page was read, here or by another worker.
      const row = await ledger.byId(next.value)
      if (row?.state === 'unknown' && this.#isLookupDue(row)) return row
    }
  }

  /** Whether an unknown row is to be looked up now; remembers when one is due later. */
  #isLookupDue(row: LedgerRow): boolean {
    const at = lookupAt(this.#options, row)
    if (at <= this.#options.ledger.now()) return true
    this.#nextLookupAt = Math.min(this.#nextLookupAt, at)
    return false
  }

  /** The next row that is due and that its breaker admits. */
  async #nextStaged(): Promise<LedgerRow | undefined> {
    const { ledger } = this.#options
    const closed = this.#breakers.closedKeys(new Set(this.#sends.map(({ breakerKey }) => breakerKey)))
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

  get #sends() {
    return [...this.#inFlight.values()].filter(({ isSend }) => isSend)
  }

  get #only() {
    const { run, rows, canary } = this.#options
    return { run, rows, canary }
  }

  /** Begins a send or a lookup, which gives when its row is to be looked up. */
  #begin(row: LedgerRow, { isSend, work }: { isSend: boolean; work: () => Promise<number> }): void {
    const ended = work()
      .catch((error: unknown) => {
        this.#error ??= error
        return Infinity
      })
      .then((lookupAt) => {
        // At once: a pass skips what is in flight, and no other pass begins for it.
        this.#inFlight.delete(row.id)
        this.#nextLookupAt = Math.min(this.#nextLookupAt, lookupAt)
        this.#answered(row)
      })
    this.#inFlight.set(row.id, { breakerKey: row.breakerKey, isSend, ended })
    this.#unanswered.add(row.id)
  }

  #answered({ id }: LedgerRow): void {
    this.#unanswered.delete(id)
    this.#progressed.resolve()
    this.#progressed = Promise.withResolvers()
  }

  async #send(row: LedgerRow): Promise<number> {
    const { ledger, sender, kind, billing, signal: stop, onDoubled, onAway } = this.#options
    const isTrial = this.#breakers.isOpen(row.breakerKey)
    this.#tally.begin(row)
    const onAnswer = () => this.#answered(row)
    const sent = await sendOne({ ledger, sender, kind, billing, row, stop, onAnswer, onAway })
    // First: what an answer says must not be lost where the ledger cannot be read.
    if (sent.doubled !== undefined) onDoubled?.({ row: row.row, ids: sent.doubled })
    this.#error ??= sent.error
    if (sent.notLeft !== undefined) this.#pause(sent.notLeft)
    else this.#notLeft = 0
    return await this.#record(row, { isTrial })
  }

  /** 1, 2, 4 ... 30 s. */
  #pause(notLeft: Error): void {
    this.#notLeft += 1
    this.#pausedUntil = performance.now() + Math.min(longestPauseMs, 500 * 2 ** this.#notLeft)
    if (this.#notLeft >= maxNotLeft) this.#error ??= notLeft
  }

  async #lookUp(row: LedgerRow): Promise<number> {
    const { signal } = this.#options
    try {
      await reconcileOne(this.#options, row)
    } catch (error) {
      if (!signal.aborted) throw error
    }
    return await this.#record(row)
  }

  /** Records the outcome of a row that was sent or looked up; returns when to look it up next. */
  async #record(row: LedgerRow, send?: { isTrial: boolean }): Promise<number> {
    const { ledger, onProgress } = this.#options
    const now = await ledger.byId(row)
    if (now !== undefined) this.#tally.end(row, now, { wasBegun: send !== undefined })
    await this.#breakers.recordEnd({ key: row.breakerKey, isEarlier: send?.isTrial === false })
    onProgress?.(this.#tally.counts)
    return now?.state === 'unknown' ? lookupAt(this.#options, now) : Infinity
  }

  /** How the segment ends if nothing can begin and nothing is in flight. */
  async #endOf(idle: Exclude<Idle, 'paused'>): Promise<{ ended: SendEnd; nextAt: number | undefined }> {
    const { ledger, lookupsOnly } = this.#options
    const nextLookupAt = this.#nextLookupAt === Infinity ? undefined : this.#nextLookupAt
    const later = (...times: (number | undefined)[]) => earliest(nextLookupAt, ...times)
    if (idle === 'maxChanges' || idle === 'maxFailures') return ends(idle, later())
    if (lookupsOnly === true) return ends('finished', later())
    const [held] = await ledger.due({ ...this.#only, at: ledger.now(), limit: 1 })
    const nextDue = (exceptBreakerKeys: string[]) => ledger.nextDue({ ...this.#only, exceptBreakerKeys })
    if (held === undefined) return ends('finished', later(await nextDue([])))
    // First: a trial that is due by then counts as a change that is due.
    const trialAt = this.#breakers.nextTrialAt
    // Changes of other breakers may become due while this one is open. Those beside a canary wait for its result.
    const due = await nextDue(this.#breakers.closedKeys(new Set()))
    return ends('breaker', later(due, trialAt))
  }

  /** Whether all of the canary was held back by checks before sending, so that others go first. */
  async #choseMoreCanary(): Promise<boolean> {
    const { canary, canarySize } = this.#options
    return canary === true && (await markCanary({ ...this.#options, ...canarySize }))
  }
}

const ends = (ended: SendEnd, nextAt: number | undefined) => ({
  ended: nextAt === undefined || ended === 'breaker' ? ended : ('waiting' as const),
  nextAt,
})

const earliest = (...times: (number | undefined)[]): number | undefined => {
  const known = times.filter((time) => time !== undefined)
  return known.length === 0 ? undefined : Math.min(...known)
}
