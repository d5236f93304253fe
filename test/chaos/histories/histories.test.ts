import { describe, expect, inject, test } from 'vitest'
import { jobs, playHistory } from './history.ts'
import { openRunner } from './runner.ts'
import { Tally } from '../tally.ts'

describe('kills, freezes, pauses, stops, restores, lost locks and lost replies', { timeout: 240_000 }, () => {
  test('let no report say what the service denies, and nothing be done twice (seed 42)', () => play([42]))

  test(
    'let no report say what the service denies, and nothing be done twice (seeds 43, 44, 45)',
    { tags: ['soak'] },
    async () => {
      const { counts } = await play([43, 44, 45])
      // The others depend on how far a step is when they fall.
      const blows = ['kill', 'state.db restored', 'import proven']
      expect(blows.filter((blow) => !counts.has(blow))).toEqual([])
    },
  )
})

async function play(seeds: readonly number[]): Promise<Tally> {
  const tally = new Tally()
  await using runner = await openRunner({ address: inject('temporalAddress') })
  const found = await Promise.all(
    jobs.map(async (job) => {
      const findings: string[] = []
      for (const seed of seeds) findings.push(...(await playHistory({ runner, seed, job, tally })))
      return findings
    }),
  )
  console.log(Object.fromEntries(tally.counts))
  expect(found.flat()).toEqual([])
  return tally
}
