/**
 * The promise of the whole room: what is called proven misses nothing.
 *
 * READ_RUNS=20000 makes a soak of it, READ_SEED another one.
 */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyList, runs, seed } from './any-list.ts'
import { AnyService, whereLostForGood } from './any-service.ts'
import { anyHarmless, anyService } from './any-ways.ts'
import {
  readBackward,
  readForward,
  readFromLastPage,
  readWithLooseTies,
  type CarelessRead,
} from './careless-reads.ts'
import { createRandom, DriftingList, type ListOptions } from './drifting-list.ts'
import { readThrough } from './read-through.ts'

const anyRead = fc.record({
  crash: fc.constantFrom(0, 0, 0.05, 0.3),
})

describe('a read that is called proven', () => {
  test(
    'holds every record that was there throughout, once, whatever the service does and wherever it crashes',
    { timeout: 60_000 + runs * 100 },
    async () => {
      const verdicts: Record<string, number> = {}
      await fc.assert(
        fc.asyncProperty(anyService, anyRead, async (options, { crash }) => {
          const service = new AnyService(options)
          const random = createRandom(options.list.seed + 1)
          const taken = await readThrough(service.read, { crash, random }).catch(whereLostForGood)
          const verdict = taken?.outcome.verdict ?? 'ended by an error'
          verdicts[verdict] = (verdicts[verdict] ?? 0) + 1
          if (taken !== undefined) expect(service.judge(taken)).toEqual([])
        }),
        { numRuns: runs, seed, endOnFailure: true },
      )
      console.log(`seed ${seed}, ${runs} reads: ${JSON.stringify(verdicts)}`)
      // A read that proves nothing can't be wrong: many of these lists must be proven.
      expect(verdicts['proven']).toBeGreaterThan(runs * 0.3)
    },
  )

  test('is called so where a service does nothing that may cost it', { timeout: 60_000 + runs * 100 }, () =>
    fc.assert(
      fc.asyncProperty(anyHarmless, async (options) => {
        const service = new AnyService(options)
        const taken = await readThrough(service.read)
        expect(taken.outcome.reasons).toEqual([])
        expect(service.judge(taken)).toEqual([])
      }),
      { numRuns: Math.ceil(runs / 4), seed, endOnFailure: true },
    ),
  )
})

describe('the same property finds what is lost', () => {
  const careless: [string, (list: DriftingList) => Promise<CarelessRead>][] = [
    ['by reading page after page', readForward],
    ['by reading backward without links', readBackward],
    ['by links that are not strict about ties', readWithLooseTies],
    ['by trusting that nothing follows where `next` is null', readFromLastPage],
  ]
  test.for(careless)('%s', { timeout: 60_000 }, async ([name, read]) => {
    let lost = 0
    const property = fc.asyncProperty(anyList, async (options: ListOptions) => {
      const list = new DriftingList({ ...options, gatewayFaults: 0, shortWindows: 0 })
      const { ids, proven } = await read(list)
      const taken = new Set(ids)
      lost = [...list.throughout].filter((id) => !taken.has(id)).length
      return !proven || lost === 0
    })
    const found = await fc.check(property, { numRuns: 2000, seed, endOnFailure: true })
    console.log(`lost ${name}: ${lost} records, seed ${seed}, path ${found.counterexamplePath}`)
    expect(found.failed, 'the property can not fail').toBe(true)
  })
})
