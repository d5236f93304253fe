import { toTimestamp } from './instant.ts'
import type { Intake } from './intake.ts'
import type { Reading } from './reading.ts'
import type { StatusCheck, SweptGroup } from './state.ts'

/** The account of a whole read. */
export interface ReadOutcome {
  verdict: 'proven' | 'unproven'
  /** Why it is not proven: sentences. Empty where it is. */
  reasons: string[]
  /** What the verdict is about, in a sentence or a few. */
  scope: string
  /** What else was seen that a person may want to know. */
  notes: string[]
  completeThrough: string
  clock: 'service' | 'local'
  /** The order the chain went by, or the pages were asked in. */
  ordering: 'created' | 'updated'
  countBefore: number | undefined
  countAfter: number | undefined
  windows: number
  requests: number
  linksMended: number
  records: number
  rejected: number
  duplicatesDropped: number
  ties: SweptGroup[]
  capped: boolean
  /** The list does not show some records unless their status is asked for. */
  hiddenFound: boolean
  statusCheck?: StatusCheck
  testModeCarried: boolean
  uncheckableFilters: string[]
}

export function toOutcome(reading: Reading, { uncheckable }: Intake): ReadOutcome {
  const { state, requests, key } = reading
  const { ignored, testMode } = state.seen
  const reasons = [
    ...state.reasons,
    ...Object.entries(ignored).map(
      ([name, times]) =>
        `the filter ${name} is not honoured: ${times} records that do not match it came, and were left out`,
    ),
    ...(state.capped ? [`capped at ${requests.most} pages`] : []),
  ]
  return {
    verdict: reasons.length === 0 ? 'proven' : 'unproven',
    reasons,
    scope: toScope(reading, uncheckable),
    notes: requests.oddNext > 0 ? [oddNext(requests.oddNext)] : [],
    completeThrough: toTimestamp(state.completeThrough),
    clock: state.clock,
    ordering: key,
    countBefore: state.countBefore,
    countAfter: state.countAfter,
    requests: requests.made,
    ...state.counts,
    ties: state.ties,
    capped: state.capped,
    hiddenFound: state.hiddenFound,
    ...(state.statusCheck !== undefined && { statusCheck: state.statusCheck }),
    testModeCarried: testMode,
    uncheckableFilters: uncheckable,
  }
}

function toScope(reading: Reading, uncheckable: string[]): string {
  const { options, state, key } = reading
  const { resource, filters = {} } = options
  const names = Object.keys(filters)
  const until = toTimestamp(state.completeThrough)
  const matched = names.length > 0 ? ` and matched ${names.join(', ')}` : ''
  const sentences = [
    key === 'created'
      ? `Every record of ${resource.name} that was in the list${matched} throughout and was created up to ${until} is here once.`
      : `Every record of ${resource.name} that was in the list${matched} throughout, was updated since ${toTimestamp(reading.until)} and up to ${until}, and not updated during the read, is here.`,
  ]
  if (key === 'updated' && (resource.statuses ?? []).length > 0 && filters['status'] === undefined)
    sentences.push(
      'A record that went to a status which the list shows only if it is asked for is not here; the next full read finds it.',
    )
  if (uncheckable.length > 0)
    sentences.push(`Nothing in a record tells whether ${uncheckable.join(', ')} was honoured.`)
  if (!resource.carriesTestMode) sentences.push('The records do not say whether they are live or test data.')
  if (state.hiddenFound)
    sentences.push(
      'The list hides records unless their status is asked for, so each status was read apart: a hidden record is here only if its status did not change meanwhile.',
    )
  return [...sentences, ...state.provided].join(' ')
}

function oddNext(times: number): string {
  return `${times} responses named a next page that is not the one that follows; it was ignored`
}
