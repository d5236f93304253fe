import * as fc from 'fast-check'
import { anyList } from '../core/reading/any-list.ts'
import { anyRangedRead, judgeRanges } from '../core/reading/judge-ranges.ts'
import type { Tally } from './surroundings.ts'

/**
 * Reads lists that drift in any way in ranges with any bounds, with the seeds N, N + 1, ..., and holds what came against
 * what was there. Returns what is wrong.
 */
export async function playRanges({
  reads,
  seed,
  tally,
}: {
  reads: number
  seed: number
  tally: Tally
}): Promise<string[]> {
  const found: string[] = []
  for (let read = seed; read < seed + reads; read += 1) {
    const [pair] = fc.sample(fc.tuple(anyList, anyRangedRead), { seed: read, numRuns: 1 })
    const [list, how] = pair!
    const judged = await judgeRanges(list, how)
    tally.add(`read ${judged.verdict}`)
    for (const name of ['ranges', 'restarts', 'requests', 'records'] as const) tally.add(name, judged[name])
    found.push(...judged.findings.map((finding) => `ranges, seed ${read}: ${finding}`))
  }
  return found
}
