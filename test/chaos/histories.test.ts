import { expect, test } from 'vitest'
import { jobs, playHistory } from './history.ts'
import { Tally } from './surroundings.ts'

const seeds = [42, 43, 44, 45]

test(
  `kills, freezes, pauses, stops, restores, lost locks and lost replies: no report says what the service denies, and nothing is done twice (seeds ${seeds.join(', ')})`,
  { timeout: 240_000 },
  async () => {
    const tally = new Tally()
    const found = await Promise.all(
      jobs.map(async (job) => {
        const findings: string[] = []
        for (const seed of seeds) findings.push(...(await playHistory({ seed, job, tally })))
        return findings
      }),
    )
    console.log(Object.fromEntries(tally.counts))
    expect(found.flat()).toEqual([])
    // The others depend on how far a step is when they fall.
    const blows = ['kill', 'state.db restored', 'import proven']
    expect(blows.filter((blow) => !tally.counts.has(blow))).toEqual([])
  },
)
