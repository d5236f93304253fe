import type { Selection } from './candidates/select.ts'

/** The counts that a person needs before they approve a recovery: what it would do, or does. */
export interface Preview {
  /** The number of subscriptions to resume. */
  toResume: number
  byReason: Record<string, number>
  /** The number to resume, by collection scheme. Those with `charge_payment` charge a card or account immediately. */
  byScheme: Record<string, number>
  /**
   * The number to resume, by their next billing date. The service does not document what a resume without
   * next_billing bills.
   */
  byNextBilling: { past: number; today: number; future: number; none: number }
  /** The number not resumed, by outcome: needsPerson, coolingDown, attemptsUsedUp, notTried. */
  notResumed: Record<string, number>
  /** The number that need a person, by reason. */
  needsPerson: Record<string, number>
}

export function toPreview({ rows }: Pick<Selection, 'rows'>, now: number): Preview {
  const preview: Preview = {
    toResume: 0,
    byReason: {},
    byScheme: {},
    byNextBilling: { past: 0, today: 0, future: 0, none: 0 },
    notResumed: {},
    needsPerson: {},
  }
  const today = new Date(now).toISOString().slice(0, 10)
  for (const { candidate, change } of rows) {
    const { reason, scheme, nextBilling } = candidate
    if (change.closed !== undefined) {
      count(preview.notResumed, change.closed.outcome)
      if (change.closed.outcome === 'needsPerson') count(preview.needsPerson, reason)
      continue
    }
    preview.toResume += 1
    count(preview.byReason, reason)
    count(preview.byScheme, scheme === '' ? 'none' : scheme)
    preview.byNextBilling[when(nextBilling.slice(0, 10), today)] += 1
  }
  return preview
}

function when(date: string, today: string): keyof Preview['byNextBilling'] {
  if (date === '') return 'none'
  return date < today ? 'past' : date === today ? 'today' : 'future'
}

function count(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1
}
