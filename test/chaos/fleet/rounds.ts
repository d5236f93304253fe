import type { FleetOptions } from './play-fleet.ts'
import { type Plan, sureFreezePoints } from './strikes.ts'

/** One kind of round of the fleet: what strikes it, and how long the service keeps an idle connection open. */
export interface Round extends Pick<FleetOptions, 'idleMs' | 'mayDouble'> {
  name: string
  plan: Plan
}

const nothing: Plan = {
  freezes: 0,
  points: sureFreezePoints,
  kills: 0,
  outages: 0,
  serviceLosses: 0,
  bucketLosses: 0,
  mostFrozen: 3,
}
/** Each costs a step an attempt, after which Temporal waits longer, up to 30 s: with twice as many, a round took 20 minutes. */
const strikes: Plan = {
  ...nothing,
  freezes: 40,
  kills: 27,
  serviceLosses: 2,
  bucketLosses: 2,
}

/** An outage stops all workers, so outages have a round of their own: in the others they would only take time. */
export const rounds: readonly Round[] = [
  {
    name: 'kills and freezes, idle connections never closed',
    plan: strikes,
    // So that a frozen worker's claim cannot leave late for another reason.
    idleMs: 120_000,
  },
  {
    name: 'outages of PostgreSQL',
    plan: { ...nothing, outages: 10, kills: 4, freezes: 6 },
    idleMs: 120_000,
  },
  {
    name: 'kills and freezes, idle connections closed sooner than the lookups',
    plan: { ...strikes, points: ['afterLook', 'anywhere'] },
    idleMs: 3_000,
  },
  {
    name: 'freezes that may double a row, which is then marked',
    // Only what nobody kills can say that it was late.
    plan: { ...strikes, points: ['afterLook'], kills: 0 },
    idleMs: 120_000,
    mayDouble: true,
  },
]
