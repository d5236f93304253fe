import * as fc from 'fast-check'
import type { ListOptions } from './drifting-list.ts'

export const chance = (...values: number[]) => fc.constantFrom(...values)

/** Lists with any mix of what can happen to one, from nothing at all to far more than any service does. */
export const anyList: fc.Arbitrary<ListOptions> = fc.record({
  seed: fc.integer({ min: 1, max: 2 ** 31 }),
  size: fc.oneof(fc.integer({ min: 0, max: 120 }), fc.integer({ min: 121, max: 900 })),
  ties: chance(0, 0.3, 0.6, 0.95),
  groups: fc.array(
    fc.record({
      records: fc.oneof(fc.integer({ min: 2, max: 110 }), fc.integer({ min: 111, max: 300 })),
      after: fc.oneof(fc.constantFrom(0, 0.999, 1), fc.double({ min: 0, max: 0.999, noNaN: true })),
    }),
    { maxLength: 2 },
  ),
  drift: fc.record({
    deletes: chance(0, 0.3, 1, 3),
    inserts: chance(0, 0.3, 1, 3),
    lateCommits: chance(0, 0.3, 1, 3),
    restores: chance(0, 0.3, 1, 3),
    tiedInserts: chance(0, 0.1, 0.5),
    updates: chance(0, 1),
  }),
  shuffledTies: fc.boolean(),
  countLag: chance(0, 3, 30),
  replicaLag: chance(0, 3, 40),
  staleShare: chance(0, 0.5),
  gatewayFaults: chance(0, 0, 0.01, 0.05),
  shortWindows: chance(0, 0, 0.02),
})

/** Runs of each property: enough for a suite by default, as many as one has time for with READ_RUNS. */
export const runs = Number(process.env['READ_RUNS'] ?? 250)
/** Fixed, so that a suite says the same each time; another one with READ_SEED. */
export const seed = Number(process.env['READ_SEED'] ?? 20_261_121)
