import type { Ledger } from '../../state/ledger/ledger.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import { hasFailed } from '../outcomes.ts'
import { Breaker, type BreakerEvent, type BreakerState, windowSize } from './breaker.ts'

/** One breaker a lane. Their outcomes are taken from the ledger, so that a crash forgets none. */
export class Breakers {
  readonly #byLane: ReadonlyMap<string, Breaker>

  private constructor(byLane: ReadonlyMap<string, Breaker>) {
    this.#byLane = byLane
  }

  static async load({ states, ...options }: LoadOptions & { states: BreakerStates }): Promise<Breakers> {
    const counts = await options.ledger.counts({ run: options.run })
    const byLane = new Map<string, Breaker>()
    for (const lane of new Set(counts.map((count) => count.lane))) {
      const state = states[lane] ?? { clearedAt: 0, trials: 0 }
      byLane.set(lane, await loadOne({ ...options, lane, state }))
    }
    return new Breakers(byLane)
  }

  of(lane: string): Breaker {
    const breaker = this.#byLane.get(lane)
    if (breaker === undefined) throw new RangeError(`the run has no lane ${lane}`)
    return breaker
  }

  /** The lanes that may not send now. */
  closedLanes(at: number): string[] {
    return [...this.#byLane].flatMap(([lane, breaker]) => (breaker.admits(at) ? [] : [lane]))
  }

  get states(): BreakerStates {
    return Object.fromEntries([...this.#byLane].map(([lane, breaker]) => [lane, breaker.state]))
  }

  /** The lanes of which all trials failed: they stay closed until a person opens them. */
  get givenUp(): string[] {
    return [...this.#byLane].flatMap(([lane, breaker]) => (breaker.hasGivenUp ? [lane] : []))
  }

  /** When the next trial may go, over all lanes that wait for one. */
  get nextTrialAt(): number | undefined {
    const times = [...this.#byLane.values()].flatMap((breaker) => breaker.nextTrialAt ?? [])
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

async function loadOne(options: LoadOptions & { lane: string; state: BreakerState }): Promise<Breaker> {
  const { ledger, run, lane, state, maxFailureShare, trialWaitsMs } = options
  const closed = await ledger.lastClosed({ run, lane, since: state.clearedAt, limit: windowSize })
  const failures = closed.map((row) => row.state !== 'done').toReversed()
  const breaker = new Breaker({ maxFailureShare, state, failures, ...(trialWaitsMs && { trialWaitsMs }) })
  // The change sent last since it opened was its trial; what became of it stands in the ledger.
  const last = await ledger.lastSent({ run, lane })
  if (state.openedAt !== undefined && last !== undefined && (last.sentAt ?? 0) > state.openedAt) {
    breaker.start()
    breaker.record({ event: eventOf(last), at: last.closedAt ?? last.sentAt ?? 0 })
  }
  return breaker
}

function eventOf({ state, outcome }: LedgerRow): BreakerEvent {
  if (state === 'done') return 'success'
  if (state === 'unknown' || state === 'sending') return 'pending'
  return hasFailed({ state, outcome }) ? 'failure' : 'notSent'
}
