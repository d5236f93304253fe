import { expect, test } from 'vitest'
import { playFaults } from './play-faults.ts'

// The long form, with Parquet too, is `npm run chaos -- --only bucket`.
test('no manifest is wrong and no pointer goes back when answers are 503 or lost and the bucket is away', async () => {
  const played = await playFaults({ seed: 23, runs: 12, awayMs: 1_000, format: 'csv' })
  expect(played.problems).toEqual([])
  expect(played.faults).toMatchObject({
    unavailable: expect.any(Number),
    lost: expect.any(Number),
    away: expect.any(Number),
  })
  expect(played.moves).toBeGreaterThan(5)
})
