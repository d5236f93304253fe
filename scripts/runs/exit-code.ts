import type { ReportCounts } from '../../core/runs/counts.ts'
import type { EndedNote } from '../../core/runs/run-files.ts'
import { exitCodes } from '../terminal/failures.ts'

/** The exit code that the report of a run of changes earns. */
export function exitCodeOf({
  verdict,
  counts,
  ended,
}: {
  verdict: 'proven' | 'unproven' | 'dryRun'
  counts: ReportCounts
  ended?: EndedNote
}): number {
  if (verdict === 'dryRun') return exitCodes.proven
  if (ended?.how === 'refused') return exitCodes.refused
  if (ended?.how === 'failed') return exitCodes.failed
  const { staged, unknown, rejected, parked, notTried } = counts
  const isWhole = staged + unknown + rejected + parked + notTried === 0
  return verdict === 'proven' && isWhole ? exitCodes.proven : exitCodes.unproven
}
