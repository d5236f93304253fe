import { formatTime } from './format.ts'

/** An open circuit breaker, as the view of a run shows it. */
export interface OpenBreaker {
  key: string
  /** How many of its recent changes failed. */
  failed: number
  of: number
  /** The number of the next trial, from 1, and the total. */
  trial: number
  trials: number
  /** Ms since 1970; undefined if every trial failed or one is in progress. */
  nextTrialAt?: number
}

const ordinals = ['first', 'second', 'third', 'fourth', 'fifth', 'sixth']

/** `11 of the last 20 gateway_issue resumes fell back; next trial at 2026-11-21 01:13:20 UTC, the third of 3` */
export function describeBreaker(breaker: OpenBreaker, unit: string, format = formatTime): string {
  const { key, failed, of, trial, trials, nextTrialAt } = breaker
  const changes = `${failed} of the last ${of} ${key === '' ? '' : `${key} `}${unit}`
  if (trial > trials) return `${changes}; every trial failed`
  const at = nextTrialAt === undefined ? 'a trial is under way' : `next trial at ${format(nextTrialAt)}`
  return `${changes}; ${at}, the ${ordinals[trial - 1] ?? `${trial}th`} of ${trials}`
}
