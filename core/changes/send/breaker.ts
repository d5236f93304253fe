import type { OpenBreaker } from '../../runs/view/trouble.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import type { ChangeEvent } from '../../state/schema.ts'

/**
 * A circuit breaker. It opens when more than a given share of its last changes failed, or when the service failed on
 * many in a row. Then it admits one trial after 1, 2 and 4 minutes, and closes when one succeeds.
 */

/** The state of a breaker that a run carries from one sending activity to the next. */
export interface BreakerState {
  /** Milliseconds since 1970; earlier events are not counted. A person closes a breaker by setting it to now. */
  clearedAt: number
  openedAt?: number
  /** How many trials have failed since it opened. */
  trials: number
}

export type BreakerStates = Readonly<Record<string, BreakerState>>

const windowSize = 20
const leastOutcomes = 10
const maxFaults = 10
/** How long an open breaker waits before its first, second ... trial. */
const defaultWaitsMs: readonly number[] = [60_000, 120_000, 240_000]

/** Whether these events, newest first, open a breaker. Only an answer of the service ends a row of faults. */
export function isBad(events: readonly ChangeEvent[], maxFailureShare: number): boolean {
  const answered = events.findIndex((event) => event !== 'fault')
  if ((answered === -1 ? events.length : answered) >= maxFaults) return true
  const { failed, of } = outcomesOf(events)
  return of >= leastOutcomes && failed / of > maxFailureShare
}

function outcomesOf(events: readonly ChangeEvent[]) {
  const outcomes = events.filter((event) => event !== 'fault').slice(0, windowSize)
  return { failed: outcomes.filter((event) => event === 'failure').length, of: outcomes.length }
}

/** A trial of an open breaker, by what the ledger has of the change that was sent last. */
type Trial = { at: number; event: ChangeEvent } | 'pending' | undefined

/** The state after a trial. */
export function afterTrial(state: BreakerState, trial: Trial): BreakerState {
  if (trial === undefined || trial === 'pending') return state
  const { at, event } = trial
  if (event === 'success') return { clearedAt: at, trials: 0 }
  return { ...state, openedAt: at, trials: state.trials + 1 }
}

interface BreakerView {
  state: BreakerState
  failed: number
  of: number
  /** The outcome of its trial is not known yet. */
  isOnTrial: boolean
}

/** The breakers of a run by key. Each is a function of the last rows in the ledger, read again after each event. */
export class Breakers {
  readonly #options: BreakersOptions
  readonly #views = new Map<string, BreakerView>()
  #turn: Promise<void> = Promise.resolve()

  private constructor(options: BreakersOptions) {
    this.#options = options
  }

  static async load(options: BreakersOptions & { states: BreakerStates }): Promise<Breakers> {
    const breakers = new Breakers(options)
    const keys = new Set((await options.ledger.counts({ run: options.run })).map((count) => count.breakerKey))
    for (const key of keys)
      await breakers.#read(key, options.states[key] ?? { clearedAt: 0, trials: 0 }, options.ledger.now())
    return breakers
  }

  /**
   * A change was sent or looked up. `isEarlier`: it was sent before the breaker opened, and has ended since: the wait for
   * a trial begins after the last of these.
   */
  async recordEnd({ key, isEarlier }: { key: string; isEarlier: boolean }): Promise<void> {
    await this.#inTurn(async () => {
      const { state } = this.#view(key)
      const at = this.#options.ledger.now()
      await this.#read(
        key,
        isEarlier && state.openedAt !== undefined ? { ...state, openedAt: at } : state,
        at,
      )
    })
  }

  /** One at a time: a read that began before another one must not end after it. */
  async #inTurn(read: () => Promise<void>): Promise<void> {
    const turn = this.#turn.then(read)
    this.#turn = turn.catch(() => undefined)
    await turn
  }

  isOpen(key: string): boolean {
    return this.#view(key).state.openedAt !== undefined
  }

  /** Keys of breakers that admit nothing now. `busy`: those with changes in flight, which may be their trial. */
  closedKeys(busy: ReadonlySet<string>): string[] {
    const at = this.#options.ledger.now()
    return [...this.#views.keys()].filter(
      (key) => this.isOpen(key) && (busy.has(key) || at < (this.#nextTrialAt(key) ?? Infinity)),
    )
  }

  /**
   * When the next trial may be sent of a breaker that admits nothing now. One that would admit a trial, but has nothing
   * left to try, is not waited for.
   */
  get nextTrialAt(): number | undefined {
    const times = this.closedKeys(new Set()).flatMap((key) => this.#nextTrialAt(key) ?? [])
    return times.length === 0 ? undefined : Math.min(...times)
  }

  get states(): BreakerStates {
    return Object.fromEntries([...this.#views].map(([key, { state }]) => [key, state]))
  }

  /** Keys of breakers whose trials all failed: they stay open until a person closes them. */
  get givenUp(): string[] {
    return [...this.#views].flatMap(([key, { state }]) =>
      state.openedAt !== undefined && state.trials >= this.#waitsMs.length ? [key] : [],
    )
  }

  get open(): OpenBreaker[] {
    return [...this.#views].flatMap(([key, { state, failed, of }]) => {
      if (state.openedAt === undefined) return []
      const nextTrialAt = this.#nextTrialAt(key)
      const trials = { trial: state.trials + 1, trials: this.#waitsMs.length }
      return [{ key, failed, of, ...trials, ...(nextTrialAt !== undefined && { nextTrialAt }) }]
    })
  }

  get #waitsMs(): readonly number[] {
    return this.#options.waitsMs ?? defaultWaitsMs
  }

  #view(key: string): BreakerView {
    const view = this.#views.get(key)
    if (view === undefined) throw new RangeError(`the run has no breaker ${key}`)
    return view
  }

  /** Undefined if it has given up, or waits for the outcome of a trial. */
  #nextTrialAt(key: string): number | undefined {
    const { state, isOnTrial } = this.#view(key)
    const wait = this.#waitsMs[state.trials]
    return state.openedAt === undefined || wait === undefined || isOnTrial ? undefined : state.openedAt + wait
  }

  async #read(key: string, before: BreakerState, at: number): Promise<void> {
    const { ledger, run, maxFailureShare } = this.#options
    const trial = await this.#lastTrial(key, before)
    const state = afterTrial(before, trial)
    const query = { run, breakerKey: key, since: state.clearedAt }
    const newest = await ledger.breakerEvents({ ...query, limit: maxFaults })
    const answered = newest.findIndex((event) => event !== 'fault')
    const faults = answered === -1 ? newest : newest.slice(0, answered)
    // However many faults lie between them, which say nothing about the share of failures.
    const outcomes = await ledger.breakerEvents({ ...query, exceptFaults: true, limit: windowSize })
    const events = [...faults, ...outcomes]
    const opens = state.openedAt === undefined && isBad(events, maxFailureShare())
    const now = opens ? { ...state, openedAt: at, trials: 0 } : state
    this.#views.set(key, { state: now, ...outcomesOf(events), isOnTrial: trial === 'pending' })
  }

  /** The last change sent since a breaker opened was its trial. */
  async #lastTrial(key: string, { openedAt }: BreakerState): Promise<Trial> {
    if (openedAt === undefined) return undefined
    const { ledger, run } = this.#options
    const last = await ledger.lastSent({ run, breakerKey: key })
    if (last === undefined || (last.sentAt ?? 0) <= openedAt) return undefined
    const { state, event, eventAt, sentAt } = last
    if (event !== null && (eventAt ?? 0) >= (sentAt ?? 0)) return { at: eventAt ?? 0, event }
    return state === 'sending' || state === 'unknown' ? 'pending' : undefined
  }
}

interface BreakersOptions {
  ledger: Ledger
  run: string
  maxFailureShare: () => number
  waitsMs?: readonly number[] | undefined
}
