import { formatTime } from './format.ts'

/** Why a step gets no answer of the service, or waits. Numbers, times and words of ours: it is shown widely. */
export interface Trouble {
  /** For example `answers 503`. */
  what: string
  /** Ms since 1970. */
  since: number
  /** How many requests have failed since. */
  failures: number
  /** The service asked for a pause; the connector takes at most an hour of it. */
  pause?: { asked: number; until: number }
  /** A new token is waited for until then. */
  tokenUntil?: number
  /** It is PostgreSQL, not the service. */
  ofState?: true
}

/** `The service answers 503 since 2026-11-21 14:02 UTC, attempt 4.` */
export function describeTrouble(
  { what, since, failures, pause, tokenUntil, ofState }: Trouble,
  format: (at: number, to: 'minutes') => string = formatTime,
): string {
  const time = (at: number) => format(at, 'minutes')
  if (tokenUntil !== undefined)
    return `The service refuses the token; the run waits for a new one in its file until ${time(tokenUntil)}.`
  if (ofState === true)
    return `PostgreSQL does not answer since ${time(since)}; nothing is sent, and the run resumes when it is back.`
  if (pause === undefined) return `The service ${what} since ${time(since)}, attempt ${failures + 1}.`
  const sooner = pause.until < pause.asked ? `; the connector asks again at ${time(pause.until)}` : ''
  return `The service asks for a pause until ${time(pause.asked)}${sooner}.`
}

/** Whether a value from outside has the form of a trouble. */
export function isTrouble(value: unknown): value is Trouble {
  if (typeof value !== 'object' || value === null) return false
  const { what, since, failures, pause, tokenUntil } = value as Record<string, unknown>
  const { asked, until } = (pause ?? { asked: 0, until: 0 }) as Record<string, unknown>
  const numbers = [since, failures, asked, until, tokenUntil ?? 0]
  return typeof what === 'string' && numbers.every((number) => typeof number === 'number')
}

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
