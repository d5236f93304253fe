import type { ReportCounts } from '../changes/report.ts'
import { decisionOf, rowsOf, type Resolution } from './messages.ts'

/** What of a run waits for a person to find out. */
export interface Parked {
  counts?: ReportCounts
  /** The first rows that are parked, as the sending last told. */
  parkedRows?: number[]
}

/** Until the sending counts anew, from the ledger. */
export function countResolved({ counts, parkedRows }: Parked, said: Resolution): void {
  const decision = decisionOf(said)
  const to = 'exists' in decision ? 'done' : 'absent' in decision ? 'staged' : 'skipped'
  for (const row of rowsOf(said)) {
    const at = parkedRows?.indexOf(row) ?? -1
    if (counts === undefined || at < 0) continue
    parkedRows?.splice(at, 1)
    counts.parked -= 1
    counts[to] += 1
  }
}

/** Which rows are parked, and how to say what became of them, as markdown. */
export function sayParked({ counts, parkedRows = [] }: Parked): string[] {
  const [first] = parkedRows
  if (first === undefined) return []
  const others = (counts?.parked ?? 0) - parkedRows.length
  const rows = `${parkedRows.length === 1 ? 'row' : 'rows'} ${parkedRows.join(', ')}${others > 0 ? ` and ${others} more` : ''}`
  return [
    `Parked: **${rows}** (the header is row 1). No answer came, so look in the service what became of it. Then More Actions, **Send an Update**, **\`resolve\`** with \`{"row": ${first}, "exists": "<id>", "by": "your name", "why": "..."}\`; instead of \`"exists"\`, \`"absent": true\` sends it again and \`"drop": true\` leaves it out.`,
  ]
}
