import type { Preview } from '../../core/recoveries/preview.ts'
import { formatTable } from '../terminal/format.ts'

/** What would be resumed, and how much money moves at once. */
export function describePreview(preview: Preview): string {
  const { byReason, byScheme, byNextBilling, notResumed, toResume } = preview
  const rows = [
    ...named('reason', byReason),
    ...named('collection_scheme', byScheme),
    ...named('next_billing', byNextBilling),
    ...named('not resumed', notResumed),
    ['to resume', 'all', toResume] as const,
  ]
  return formatTable({ head: ['by', '', 'subscriptions'], rows })
}

const named = (by: string, counts: Readonly<Record<string, number>>) =>
  Object.entries(counts).flatMap(([name, count]) => (count === 0 ? [] : [[by, name, count] as const]))
