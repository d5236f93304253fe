/**
 * Stops a lane that does harm. It opens when more than a share of its last changes failed, or when the service
 * failed on many in a row; then it lets one change through after 1, 2 and 4 minutes, and closes when one succeeds.
 */

/** What a run remembers of a lane's breaker from one sending activity to the next. */
export interface BreakerState {
  /** Outcomes from before are not counted: it was closed then. */
  clearedAt: number
  openedAt?: number
  /** How many trials have failed since it opened. */
  trials: number
}

/**
 * What became of one request, as far as a breaker cares. `fault`: the service failed (5xx), which is no outcome of
 * the change yet. `pending`: a look will tell. `notSent`: nothing was learned.
 */
export type BreakerEvent = 'success' | 'failure' | 'fault' | 'pending' | 'notSent'

export const windowSize = 20
const leastOutcomes = 10
const mostFaults = 10
/** How long an open breaker waits before its first, second ... trial. */
const defaultTrialWaitsMs: readonly number[] = [60_000, 120_000, 240_000]

export class Breaker {
  readonly #maxFailureShare: () => number
  readonly #trialWaitsMs: readonly number[]
  #state: BreakerState
  /** Newest last; true is a failure. */
  #window: boolean[]
  #faults = 0
  #onTrial = false

  constructor({
    maxFailureShare,
    state = { clearedAt: 0, trials: 0 },
    failures = [],
    trialWaitsMs = defaultTrialWaitsMs,
  }: {
    maxFailureShare: () => number
    state?: BreakerState
    /** The outcomes since it was closed, newest last; true is a failure. */
    failures?: readonly boolean[]
    trialWaitsMs?: readonly number[]
  }) {
    this.#maxFailureShare = maxFailureShare
    this.#trialWaitsMs = trialWaitsMs
    this.#state = { ...state }
    this.#window = failures.slice(-windowSize)
  }

  get state(): BreakerState {
    return { ...this.#state }
  }

  get isOpen(): boolean {
    return this.#state.openedAt !== undefined
  }

  /** All trials failed: it stays open until a person closes it. */
  get hasGivenUp(): boolean {
    return this.isOpen && this.#state.trials >= this.#trialWaitsMs.length
  }

  /** When the next trial may go; undefined where it is closed, has given up, or waits for a trial's outcome. */
  get nextTrialAt(): number | undefined {
    const wait = this.#trialWaitsMs[this.#state.trials]
    if (this.#state.openedAt === undefined || wait === undefined || this.#onTrial) return undefined
    return this.#state.openedAt + wait
  }

  admits(at: number): boolean {
    return !this.isOpen || (this.nextTrialAt !== undefined && at >= this.nextTrialAt)
  }

  /** A change of the lane is about to be sent. */
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

  /** A person, or a new start, closes it: what failed before is not counted again. */
  close(at: number): void {
    this.#state = { clearedAt: at, trials: 0 }
    this.#window = []
    this.#faults = 0
    this.#onTrial = false
  }

  #recordWhileOpen({ event, at }: { event: BreakerEvent; at: number }) {
    if (!this.#onTrial) {
      // It was on its way when the breaker opened: the wait for a trial begins after the last of those.
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
    if (this.#faults >= mostFaults) return true
    const failures = this.#window.filter(Boolean).length
    return this.#window.length >= leastOutcomes && failures / this.#window.length > this.#maxFailureShare()
  }
}
