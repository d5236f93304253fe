import { expect, it } from 'vitest'
import { fullJitter } from '../../../core/billing/retry.ts'

it('waits up to 1, 2, 4, 8, 16 and then 30 seconds, anywhere from nothing on', () => {
  const waits = (random: number) => [1, 2, 3, 4, 5, 6, 7].map((attempt) => fullJitter(attempt, () => random))
  expect(waits(1)).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
  expect(waits(0)).toEqual([0, 0, 0, 0, 0, 0, 0])
})
