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

interface BreakersOptions {
  ledger: Ledger
  run: string
  maxFailureShare: () => number
  waitsMs?: readonly number[] | undefined
}

interface Breaker {
  state: BreakerState
  failed: number
  of: number
  /** The outcome of its trial is not known yet. */
  isOnTrial: boolean
}

/** The breakers of a run by key. Each is a function of the last rows in the ledger, read again after each event. */
export class Breakers {
  readonly #options: BreakersOptions
  readonly #waitsMs: readonly number[]
  readonly #breakers = new Map<string, Breaker>()
  #turn: Promise<void> = Promise.resolve()

  private constructor(options: BreakersOptions) {
    this.#options = options
    this.#waitsMs = options.waitsMs ?? defaultWaitsMs
  }

  static async load({ states, ...options }: BreakersOptions & { states: BreakerStates }): Promise<Breakers> {
    const breakers = new Breakers(options)
    const keys = new Set((await options.ledger.counts(options)).map((count) => count.breakerKey))
    for (const key of keys) await breakers.#read(key, states[key] ?? { clearedAt: 0, trials: 0 })
    return breakers
  }

  /**
   * A change was sent or looked up. `isEarlier`: it was sent before the breaker opened, and has ended since: the wait for
   * a trial begins after the last of these.
   */
  async recordEnd({ key, isEarlier }: { key: string; isEarlier: boolean }): Promise<void> {
    // One at a time: a read that began before another one must not end after it.
    const turn = this.#turn.then(async () => {
      const { state } = this.#of(key)
      const openedAt = this.#options.ledger.now()
      await this.#read(key, isEarlier && state.openedAt !== undefined ? { ...state, openedAt } : state)
    })
    this.#turn = turn.catch(() => undefined)
    await turn
  }

  isOpen(key: string): boolean {
    return this.#of(key).state.openedAt !== undefined
  }

  /** Keys of breakers that admit nothing now. `busy`: those with changes in flight, which may be their trial. */
  closedKeys(busy: ReadonlySet<string>): string[] {
    const at = this.#options.ledger.now()
    return [...this.#breakers.keys()].filter(
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

  /** Their states, those that are open, and the keys of those whose trials all failed: only a person closes them. */
  get report(): { breakers: BreakerStates; openBreakers: OpenBreaker[]; givenUp: string[] } {
    const all = [...this.#breakers]
    const open = all.filter(([key]) => this.isOpen(key))
    const trials = this.#waitsMs.length
    return {
      breakers: Object.fromEntries(all.map(([key, { state }]) => [key, state])),
      openBreakers: open.map(([key, { state, failed, of }]) => {
        const nextTrialAt = this.#nextTrialAt(key)
        return {
          key,
          failed,
          of,
          trial: state.trials + 1,
          trials,
          ...(nextTrialAt !== undefined && { nextTrialAt }),
        }
      }),
      givenUp: open.flatMap(([key, { state }]) => (state.trials >= trials ? [key] : [])),
    }
  }

  #of(key: string): Breaker {
    const breaker = this.#breakers.get(key)
    if (breaker === undefined) throw new RangeError(`the run has no breaker ${key}`)
    return breaker
  }

  /** Undefined if it has given up, or waits for the outcome of a trial. */
  #nextTrialAt(key: string): number | undefined {
    const { state, isOnTrial } = this.#of(key)
    const wait = this.#waitsMs[state.trials]
    return state.openedAt === undefined || wait === undefined || isOnTrial ? undefined : state.openedAt + wait
  }

  async #read(key: string, before: BreakerState): Promise<void> {
    const { ledger, run, maxFailureShare } = this.#options
    const openedAt = ledger.now()
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
    const now = opens ? { ...state, openedAt, trials: 0 } : state
    this.#breakers.set(key, { state: now, ...outcomesOf(events), isOnTrial: trial === 'pending' })
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
