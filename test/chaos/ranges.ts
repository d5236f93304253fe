import * as fc from 'fast-check'
import { anyService } from '../core/reading/any-ways.ts'
import { anyRangedRead, judgeRanges } from '../core/reading/judge-ranges.ts'
import type { Tally } from './tally.ts'

/**
 * Reads the list of any service in ranges with any bounds, and holds what came against what was there. Returns what
 * is wrong.
 */
export async function playRange({ seed, tally }: { seed: number; tally: Tally }): Promise<string[]> {
  const [pair] = fc.sample(fc.tuple(anyService, anyRangedRead), { seed, numRuns: 1 })
  const [service, how] = pair!
  const judged = await judgeRanges(service, how)
  tally.add(`ranges: read ${judged.verdict}`)
  for (const name of ['ranges', 'restarts', 'requests', 'records'] as const)
    tally.add(`ranges: ${name}`, judged[name])
  return judged.findings.map((finding) => `ranges, seed ${seed}: ${finding}`)
}
