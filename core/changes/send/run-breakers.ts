import type { OpenBreaker } from '../../runs/view/breaker.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import { hasFailed } from '../outcomes.ts'
import { Breaker, type BreakerEvent, type BreakerState, windowSize } from './breaker.ts'

/** The breakers of a run by key. Their outcomes are read from the ledger, so a crash loses none. */
export class Breakers {
  readonly #byKey: ReadonlyMap<string, Breaker>

  private constructor(byKey: ReadonlyMap<string, Breaker>) {
    this.#byKey = byKey
  }

  static async load({ states, ...options }: LoadOptions & { states: BreakerStates }): Promise<Breakers> {
    const counts = await options.ledger.counts({ run: options.run })
    const byKey = new Map<string, Breaker>()
    for (const key of new Set(counts.map((count) => count.breakerKey))) {
      const state = states[key] ?? { clearedAt: 0, trials: 0 }
      byKey.set(key, await loadOne({ ...options, key, state }))
    }
    return new Breakers(byKey)
  }

  get(key: string): Breaker {
    const breaker = this.#byKey.get(key)
    if (breaker === undefined) throw new RangeError(`the run has no breaker ${key}`)
    return breaker
  }

  /** Keys of breakers that admit nothing at this time. */
  closedKeys(at: number): string[] {
    return [...this.#byKey].flatMap(([key, breaker]) => (breaker.admits(at) ? [] : [key]))
  }

  get states(): BreakerStates {
    return Object.fromEntries([...this.#byKey].map(([key, breaker]) => [key, breaker.state]))
  }

  /** Keys of breakers whose trials all failed: they stay open until a person closes them. */
  get givenUp(): string[] {
    return [...this.#byKey].flatMap(([key, breaker]) => (breaker.hasGivenUp ? [key] : []))
  }

  get open(): OpenBreaker[] {
    return [...this.#byKey].flatMap(([key, breaker]) => (breaker.isOpen ? [{ key, ...breaker.account }] : []))
  }

  /**
   * When the next trial may be sent of a breaker that admits nothing at this time. One that would admit a trial, but has
   * nothing left to try, is not waited for.
   */
  nextTrialAt(at: number): number | undefined {
    const times = [...this.#byKey.values()].flatMap((breaker) =>
      breaker.admits(at) ? [] : (breaker.nextTrialAt ?? []),
    )
    return times.length === 0 ? undefined : Math.min(...times)
  }
}

export type BreakerStates = Readonly<Record<string, BreakerState>>

interface LoadOptions {
  ledger: Ledger
  run: string
  maxFailureShare: () => number
  trialWaitsMs?: readonly number[]
}

async function loadOne(options: LoadOptions & { key: string; state: BreakerState }): Promise<Breaker> {
  const { ledger, run, key, state, maxFailureShare, trialWaitsMs } = options
  const closed = await ledger.lastClosed({ run, breakerKey: key, since: state.clearedAt, limit: windowSize })
  const failures = closed.map((row) => row.state !== 'done').toReversed()
  const faults = await ledger.faultsInARow({ run, breakerKey: key, since: state.clearedAt })
  const breaker = new Breaker({
    maxFailureShare,
    state,
    failures,
    faults,
    ...(trialWaitsMs && { trialWaitsMs }),
  })
  // The last change sent since the breaker opened was its trial; the ledger has the outcome.
  const last = await ledger.lastSent({ run, breakerKey: key })
  if (state.openedAt !== undefined && last !== undefined && (last.sentAt ?? 0) > state.openedAt) {
    breaker.start()
    breaker.record({ event: eventOf(last), at: last.closedAt ?? last.sentAt ?? 0 })
  }
  return breaker
}

function eventOf({ state, outcome, faultAt }: LedgerRow): BreakerEvent {
  if (state === 'done') return 'success'
  if (faultAt !== null) return 'fault'
  if (state === 'unknown' || state === 'sending') return 'pending'
  return hasFailed({ state, outcome }) ? 'failure' : 'notSent'
}
