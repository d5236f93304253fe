import { setTimeout as wait } from 'node:timers/promises'
import type { Ledger } from '../state/ledger.ts'
import type { LedgerRow } from '../state/ledger-row.ts'
import type { Breakers } from './breakers.ts'
import { hasFailed } from './outcomes.ts'
import type { Pass, Progress, SendEnd } from './send-changes.ts'
import { type SentOne, sendOne } from './send-one.ts'

/** Rows are fetched so many at a time: a fetch costs about as much as one claim. */
const feedRows = 64
const mostUnreachable = 8
const longestPauseMs = 30_000

/** What counts against the bounds of the whole run. */
interface Totals {
  tried: number
  failed: number
}

export async function totalsOf({ ledger, run }: { ledger: Ledger; run: string }): Promise<Totals> {
  const totals: Totals = { tried: 0, failed: 0 }
  for (const { state, outcome, tried } of await ledger.counts({ run })) {
    totals.tried += tried
    if (hasFailed({ state, outcome })) totals.failed += tried
  }
  return totals
}

/** Keeps as many changes on their way as the bounds allow, until there is a reason to end. */
export class Sender {
  readonly progress: Progress = { begun: 0, done: 0, failed: 0, unknown: 0 }
  readonly #pass: Pass
  readonly #breakers: Breakers
  readonly #totals: Totals
  readonly #deadline: number
  readonly #onTheirWay = new Map<number, Promise<void>>()
  #feed: LedgerRow[] = []
  #pausedUntil = 0
  #unreachable = 0
  #error: unknown

  constructor({ pass, breakers, totals }: { pass: Pass; breakers: Breakers; totals: Totals }) {
    this.#pass = pass
    this.#breakers = breakers
    this.#totals = totals
    this.#deadline = performance.now() + pass.timeBoxMs
  }

  async run(): Promise<SendEnd> {
    let ended: SendEnd | undefined
    while (ended === undefined) {
      await this.#pause()
      ended = this.#reasonToEnd() ?? (await this.#step())
    }
    await Promise.all(this.#onTheirWay.values())
    if (this.#error !== undefined) throw this.#error
    return ended
  }

  #reasonToEnd(): SendEnd | undefined {
    const { stop, limits } = this.#pass
    if (stop.aborted || this.#error !== undefined) return 'stopped'
    if (performance.now() >= this.#deadline) return 'timeUp'
    if (this.#totals.failed > (limits.maxFailures ?? Infinity)) return 'maxFailures'
    return undefined
  }

  /** Begins one more change, or waits for one that is on its way. */
  async #step(): Promise<SendEnd | undefined> {
    if (this.#onTheirWay.size >= this.#pass.limits.inFlight) return await this.#awaitOne()
    const row = await this.#next()
    if (row === undefined)
      return this.#onTheirWay.size > 0 ? await this.#awaitOne() : await this.#whyNothingIsDue()
    if (row.sends === 0 && this.#totals.tried >= (this.#pass.limits.maxChanges ?? Infinity))
      return 'maxChanges'
    this.#begin(row)
    return undefined
  }

  async #awaitOne(): Promise<undefined> {
    await Promise.race(this.#onTheirWay.values())
  }

  async #next(): Promise<LedgerRow | undefined> {
    const { ledger, run, rows, now } = this.#pass
    const closed = this.#breakers.closedLanes(now())
    this.#feed = this.#feed.filter((row) => !closed.includes(row.lane))
    if (this.#feed.length === 0)
      this.#feed = await ledger.due({
        run,
        at: now(),
        ...(rows && { rows }),
        exceptLanes: closed,
        exceptIds: [...this.#onTheirWay.keys()],
        limit: feedRows,
      })
    return this.#feed.shift()
  }

  async #whyNothingIsDue(): Promise<SendEnd> {
    const { ledger, run, rows, now } = this.#pass
    const left = await ledger.due({ run, at: now(), ...(rows && { rows }), limit: 1 })
    return left.length === 0 ? 'nothingDue' : 'breaker'
  }

  #begin(row: LedgerRow) {
    const { ledger, kind, billing, journal, now, stop } = this.#pass
    const breaker = this.#breakers.of(row.lane)
    breaker.start()
    this.progress.begun += 1
    if (row.sends === 0) this.#totals.tried += 1
    const sending = sendOne({ ledger, kind, billing, journal, row, now, stop }).then((sent) => {
      this.#onTheirWay.delete(row.id)
      breaker.record({ event: sent.event, at: now() })
      this.#count(row, sent)
    })
    this.#onTheirWay.set(row.id, sending)
  }

  #count(row: LedgerRow, { event, claimed, error, unreachable }: SentOne) {
    if (event === 'success') this.progress.done += 1
    if (event === 'failure') {
      this.progress.failed += 1
      this.#totals.failed += 1
    }
    if (event === 'fault' || event === 'pending') this.progress.unknown += 1
    if (event === 'notSent' && row.sends === 0) this.#totals.tried -= 1
    if (claimed) this.#unreachable = unreachable === undefined ? 0 : this.#unreachable + 1
    if (this.#unreachable > 0)
      this.#pausedUntil = performance.now() + Math.min(longestPauseMs, 500 * 2 ** this.#unreachable)
    if (error !== undefined) this.#error ??= error
    if (this.#unreachable >= mostUnreachable) this.#error ??= unreachable
    this.#pass.onProgress?.({ ...this.progress })
  }

  /** Where the service can't be reached, the next try waits: 1, 2, 4 ... 30 s. */
  async #pause(): Promise<void> {
    const ms = Math.min(this.#pausedUntil, this.#deadline) - performance.now()
    if (ms > 0) await wait(ms, undefined, { signal: this.#pass.stop }).catch(() => {})
  }
}
