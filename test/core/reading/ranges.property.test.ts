/**
 * The same promise for a list that is read in ranges: what is called proven misses nothing and has nothing twice.
 *
 * `npm run chaos -- --only ranges --rounds 20000` makes a soak of it; READ_RUNS and READ_SEED change it here.
 */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyList, runs as usualRuns, seed } from './any-list.ts'
import { anyService } from './any-ways.ts'
import { readPagesAtOnce } from './careless-reads.ts'
import { DriftingList } from './drifting-list.ts'
import { anyRangedRead, judgeRanges, mutants } from './judge-ranges.ts'

const runs = Math.ceil(usualRuns / 2)

describe('a read in ranges that is called proven', () => {
  test(
    'holds every record that was there throughout, once, whatever the bounds, the service and its crashes do',
    { timeout: 60_000 + runs * 100 },
    async () => {
      const verdicts: Record<string, number> = {}
      let ranges = 0
      await fc.assert(
        fc.asyncProperty(anyService, anyRangedRead, async (options, read) => {
          const judged = await judgeRanges(options, read)
          verdicts[judged.verdict] = (verdicts[judged.verdict] ?? 0) + 1
          ranges += judged.ranges
          expect(judged.findings).toEqual([])
        }),
        { numRuns: runs, seed, endOnFailure: true },
      )
      console.log(`seed ${seed}, ${runs} reads in ${ranges} ranges: ${JSON.stringify(verdicts)}`)
      // A read that proves nothing can't be wrong: many of these lists must be proven.
      expect(verdicts['proven']).toBeGreaterThan(runs * 0.3)
    },
  )
})

describe('the same property finds', () => {
  test.for(Object.entries(mutants))('%s', { timeout: 60_000 }, async ([name, mutant]) => {
    let findings: string[] = []
    const property = fc.asyncProperty(anyService, anyRangedRead, async (options, read) => {
      ;({ findings } = await judgeRanges(options, { ...read, mutant }))
      return !findings.some((finding) => finding.startsWith('proven'))
    })
    const found = await fc.check(property, { numRuns: 2000, seed, endOnFailure: true })
    console.log(`${name}: ${findings.join(', ')}, seed ${seed}, path ${found.counterexamplePath}`)
    expect(findings.join()).toMatch(/lost|twice/)
  })

  test('ranges of pages instead of `created`', { timeout: 60_000 }, async () => {
    let lost = 0
    const property = fc.asyncProperty(anyList, async (options) => {
      const list = new DriftingList({ ...options, gatewayFaults: 0, shortWindows: 0 })
      const taken = new Set((await readPagesAtOnce(list)).ids)
      lost = [...list.throughout].filter((id) => !taken.has(id)).length
      return lost === 0
    })
    const found = await fc.check(property, { numRuns: 2000, seed, endOnFailure: true })
    console.log(`ranges of pages: lost ${lost}, seed ${seed}, path ${found.counterexamplePath}`)
    expect(lost).toBeGreaterThan(0)
  })
})
