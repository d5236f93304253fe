import { expect, inject, test } from 'vitest'
import { Random } from '../random.ts'
import { Tally } from '../tally.ts'
import { playFleet } from './play-fleet.ts'
import { measureKill, measureOutage } from './strikes.ts'

test(
  'another worker resumes the runs of a worker that is killed, and all resume without a new attempt once PostgreSQL is back',
  { tags: ['long'] },
  async () => {
    const tally = new Tally()
    const found = await playFleet({
      seed: 1,
      tally,
      temporal: { address: inject('temporalAddress'), binary: inject('temporalBinary') },
      workers: 2,
      changes: { retentions: 80, addons: 0, subscriptions: 40 },
      requestsPerSecond: 16,
      idleMs: 120_000,
      // 8 s after a SIGKILL and 2 s after an outage are for `npm run chaos` to hold, on a machine with nothing else to do:
      // there it is 5.7 and 1.3 s. Three times as long still fails a resume that waits for a timeout of 30 s, or of 10 s.
      patience: 3,
      strike: async (stage) => {
        await measureOutage(stage, 2_000)
        await measureKill(stage, new Random(1))
      },
    })
    console.log(tally.lines().join('\n'))
    expect(found).toEqual([])
    const measured = [...tally.times.keys()].join('; ')
    expect(measured).toContain("PostgreSQL's return to the next request of the import")
    expect(measured).toContain("PostgreSQL's return to the next request of the recovery")
    expect(measured).toContain('SIGKILL until another worker is at work')
  },
)
