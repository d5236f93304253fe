import { expect, inject, test } from 'vitest'
import { Tally } from '../tally.ts'
import { jobs, playHistory } from './history.ts'
import { openRunner } from './runner.ts'

const seed = 42

test(
  `kills, freezes, pauses, stops, restores, lost locks and lost replies let no report say what the service denies, and nothing be done twice (seed ${seed})`,
  { tags: ['long'], timeout: 240_000 },
  async () => {
    const tally = new Tally()
    await using runner = await openRunner({ address: inject('temporalAddress') })
    const found = await Promise.all(jobs.map((job) => playHistory({ runner, seed, job, tally })))
    console.log(Object.fromEntries(tally.counts))
    expect(found.flat()).toEqual([])
  },
)
