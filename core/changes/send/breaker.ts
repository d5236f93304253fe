import type { OpenBreaker } from '../../runs/view/breaker.ts'

/**
 * A circuit breaker. It opens when more than a given share of its last changes failed, or when the service failed on
 * many in a row. Then it admits one trial after 1, 2 and 4 minutes, and closes when one succeeds.
 */

/** The state of a breaker that a run carries from one sending activity to the next. */
export interface BreakerState {
  /** Milliseconds since 1970; earlier outcomes are not counted. */
  clearedAt: number
  openedAt?: number
  /** How many trials have failed since it opened. */
  trials: number
}

/**
 * The result of one request for the breaker. `fault`: the service failed (5xx), which does not decide the change yet.
 * `pending`: a lookup will decide. `notSent`: nothing was learned.
 */
export type BreakerEvent = 'success' | 'failure' | 'fault' | 'pending' | 'notSent'

export const windowSize = 20
const leastOutcomes = 10
const maxFaults = 10
/** How long an open breaker waits before its first, second ... trial. */
const defaultTrialWaitsMs: readonly number[] = [60_000, 120_000, 240_000]

export class Breaker {
  readonly #maxFailureShare: () => number
  readonly #trialWaitsMs: readonly number[]
  #state: BreakerState
  /** Newest last; true is a failure. */
  #window: boolean[]
  #faults: number
  #onTrial = false

  constructor({
    maxFailureShare,
    state = { clearedAt: 0, trials: 0 },
    failures = [],
    faults = 0,
    trialWaitsMs = defaultTrialWaitsMs,
  }: {
    maxFailureShare: () => number
    state?: BreakerState
    /** The outcomes since it was closed, newest last; true is a failure. */
    failures?: readonly boolean[]
    /** How many faults in a row came since then. */
    faults?: number
    trialWaitsMs?: readonly number[]
  }) {
    this.#maxFailureShare = maxFailureShare
    this.#trialWaitsMs = trialWaitsMs
    this.#state = { ...state }
    this.#window = failures.slice(-windowSize)
    this.#faults = faults
  }

  get state(): BreakerState {
    return { ...this.#state }
  }

  get isOpen(): boolean {
    return this.#state.openedAt !== undefined
  }

  /** All trials failed: the breaker stays open until a person closes it. */
  get hasGivenUp(): boolean {
    return this.isOpen && this.#state.trials >= this.#trialWaitsMs.length
  }

  /** When the next trial may be sent; undefined if the breaker is closed, has given up, or waits for a trial's outcome. */
  get nextTrialAt(): number | undefined {
    const wait = this.#trialWaitsMs[this.#state.trials]
    if (this.#state.openedAt === undefined || wait === undefined || this.#onTrial) return undefined
    return this.#state.openedAt + wait
  }

  /** Its outcomes and trials, as a run shows them while it is open. */
  get account(): Omit<OpenBreaker, 'key'> {
    const { nextTrialAt } = this
    return {
      failed: this.#window.filter(Boolean).length,
      of: this.#window.length,
      trial: this.#state.trials + 1,
      trials: this.#trialWaitsMs.length,
      ...(nextTrialAt !== undefined && { nextTrialAt }),
    }
  }

  admits(at: number): boolean {
    return !this.isOpen || (this.nextTrialAt !== undefined && at >= this.nextTrialAt)
  }

  /** Called when a change is about to be sent. */
  start(): void {
    if (this.isOpen) this.#onTrial = true
  }

  record({ event, at }: { event: BreakerEvent; at: number }): void {
    if (event === 'fault') this.#faults += 1
    if (event === 'success' || event === 'failure') this.#faults = 0
    if (this.isOpen) return this.#recordWhileOpen({ event, at })
    if (event === 'success' || event === 'failure')
      this.#window = [...this.#window, event === 'failure'].slice(-windowSize)
    if (this.#isBad()) this.#state = { ...this.#state, openedAt: at, trials: 0 }
  }

  /** Closes the breaker, by a person or a restart: earlier failures are not counted again. */
  close(at: number): void {
    this.#state = { clearedAt: at, trials: 0 }
    this.#window = []
    this.#faults = 0
    this.#onTrial = false
  }

  #recordWhileOpen({ event, at }: { event: BreakerEvent; at: number }) {
    if (!this.#onTrial) {
      // Sent before the breaker opened: the wait for a trial begins after the last of these.
      this.#state = { ...this.#state, openedAt: at }
      return
    }
    if (event === 'pending') return
    this.#onTrial = false
    if (event === 'success') this.close(at)
    else if (event !== 'notSent')
      this.#state = { ...this.#state, openedAt: at, trials: this.#state.trials + 1 }
  }

  #isBad(): boolean {
    if (this.#faults >= maxFaults) return true
    const failures = this.#window.filter(Boolean).length
    return this.#window.length >= leastOutcomes && failures / this.#window.length > this.#maxFailureShare()
  }
}
