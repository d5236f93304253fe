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
  /** The promise covers records created up to this moment; null where nothing is promised. */
  completeThrough: string | null
  /** The newest `updated` that the list showed before the read; absent where it showed none. */
  newestUpdated?: string
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
  const isProven = reasons.length === 0
  const { newestUpdated } = state
  return {
    verdict: isProven ? 'proven' : 'unproven',
    reasons,
    scope: [
      ...(isProven ? provenScope(reading) : unprovenScope(reading)),
      ...bothScope(reading, uncheckable),
    ].join(' '),
    notes: requests.oddNext > 0 ? [oddNext(requests.oddNext)] : [],
    completeThrough: isProven ? toTimestamp(state.completeThrough) : null,
    ...(newestUpdated !== undefined && { newestUpdated: toTimestamp(newestUpdated) }),
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

/** What a proven read holds. */
function provenScope(reading: Reading): string[] {
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
  if (state.hiddenFound)
    sentences.push(
      'The list hides records unless their status is asked for, so each status was read apart: a hidden record is here only if its status did not change meanwhile.',
    )
  return [...sentences, ...state.provided]
}

/** What a read holds that proves nothing: only what came. */
function unprovenScope({ options, state }: Reading): string[] {
  const { resource } = options
  return [
    `${state.counts.records} records of ${resource.name} that the service listed during the read are here, each once.`,
    state.capped
      ? 'The read ended at its cap, so the records behind it are not here, and others may be missing too.'
      : 'Other records may be missing, and nothing tells which.',
  ]
}

/** What holds of a read whatever its verdict. */
function bothScope({ options, state }: Reading, uncheckable: string[]): string[] {
  const { rejected } = state.counts
  return [
    ...(rejected > 0
      ? [`Of what came, ${rejected} had no id that a table could hold: rejected.jsonl has them.`]
      : []),
    ...(uncheckable.length > 0
      ? [`Nothing in a record tells whether ${uncheckable.join(', ')} was honoured.`]
      : []),
    ...(options.resource.carriesTestMode
      ? []
      : ['The records do not say whether they are live or test data.']),
  ]
}

function oddNext(times: number): string {
  return `${times} responses named a next page that is not the one that follows; it was ignored`
}
