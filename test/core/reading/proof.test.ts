/**
 * The promise of the whole room: what is called proven misses nothing.
 *
 * READ_RUNS=20000 makes a soak of it, READ_SEED another one.
 */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyList, runs, seed } from './any-list.ts'
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

/** Requests that were lost for good end a read with their error: that is not a verdict. */
const lostForGood = new Set(['ServiceFault', 'NotFound'])

describe('a read that is called proven', () => {
  test(
    'holds every record that was there throughout, once, whatever the list does and wherever it crashes',
    { timeout: 60_000 + runs * 100 },
    async () => {
      const verdicts: Record<string, number> = {}
      await fc.assert(
        fc.asyncProperty(anyList, anyRead, async (options, { crash }) => {
          const list = new DriftingList(options)
          const taken = await readThrough(
            { fetchPage: list.fetchPage },
            { crash, random: createRandom(options.seed + 1) },
          ).catch((error: Error) => {
            if (!lostForGood.has(error.name)) throw error
          })
          const verdict = taken?.outcome.verdict ?? 'ended by an error'
          verdicts[verdict] = (verdicts[verdict] ?? 0) + 1
          if (taken === undefined) return
          const ids = new Set(taken.ids)
          expect(taken.ids.length, 'a record came twice').toBe(ids.size)
          expect(taken.outcome.reasons.length > 0).toBe(verdict === 'unproven')
          expect(taken.outcome.records).toBe(ids.size)
          if (verdict === 'proven') expect([...list.throughout].filter((id) => !ids.has(id))).toEqual([])
        }),
        { numRuns: runs, seed, endOnFailure: true },
      )
      console.log(`seed ${seed}, ${runs} reads: ${JSON.stringify(verdicts)}`)
      // A read that proves nothing can't be wrong: most of these lists must be proven.
      expect(verdicts['proven']).toBeGreaterThan(runs * 0.6)
    },
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
