import { toInstant } from '../billing/instants.ts'
import type { Selection } from './candidates/select.ts'
import { dayMarginMs } from './next-billing.ts'

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
  /** The day that counts as today: that of the workspace. */
  today: string
  /** The number not resumed, by outcome: needsPerson, coolingDown, attemptsUsedUp, notTried. */
  notResumed: Record<string, number>
  /** The number that need a person, by reason. */
  needsPerson: Record<string, number>
}

export function toPreview({ rows }: Pick<Selection, 'rows'>, now: number): Preview {
  const today = dayOfWorkspace(rows, now)
  const preview: Preview = {
    toResume: 0,
    byReason: {},
    byScheme: {},
    byNextBilling: { past: 0, today: 0, future: 0, none: 0 },
    today,
    notResumed: {},
    needsPerson: {},
  }
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

/**
 * Today by the offset of the latest time that the service wrote: it writes its times in the workspace's zone. Without
 * one, a date is today as long as it is today anywhere on Earth.
 */
function dayOfWorkspace(rows: Selection['rows'], now: number): string {
  const [latest] = rows
    .map(({ candidate: { since } }) => ({ since, at: toInstant(since) ?? Number.NEGATIVE_INFINITY }))
    .toSorted((a, b) => b.at - a.at)
  const [, zone, sign, hours, minutes] = /(Z|([+-])(\d\d):(\d\d))$/.exec(latest?.since ?? '') ?? []
  const east = (sign === '-' ? -1 : 1) * (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60_000
  return new Date(now + (zone === undefined ? -dayMarginMs : east)).toISOString().slice(0, 10)
}

function when(date: string, today: string): keyof Preview['byNextBilling'] {
  if (date === '') return 'none'
  return date < today ? 'past' : date === today ? 'today' : 'future'
}

function count(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1
}
