import { z } from 'zod'
import { toTimestamp } from '../billing/instants.ts'
import { carriesTestMode, type ListResource, statusesOf } from '../billing/resources/filters.ts'
import { type RangeState, statusCheck, statusesThatHide, sweptGroup } from './range-state.ts'
import type { Reading } from './reading.ts'

const count = z.int().min(0)

/** What a read reports about itself, of a list or of documents by id. */
export const outcomeSchema = z.object({
  verdict: z.enum(['proven', 'unproven']),
  /** Why the read is not proven, one sentence each; empty if it is. */
  reasons: z.array(z.string()),
  /** What the verdict covers, one sentence each. */
  scope: z.array(z.string()),
  /** The guarantee covers records created up to this moment; null if there is none. */
  completeThrough: z.string().nullable(),
  /** Whose clock `completeThrough` is based on. */
  clock: z.enum(['service', 'local']),
  /** The order of the chain, or of the pages. */
  ordering: z.string(),
  /** The list's size as the service reported it; only a hint. */
  countBefore: count.nullable(),
  countAfter: count.nullable(),
  requests: count,
  windows: count,
  linksRepaired: count,
  records: count,
  duplicatesDropped: count,
  /** Groups of records with the same `created` that no window could hold and that were swept. */
  ties: z.array(sweptGroup),
  /** Ids that several records have, which makes the read unproven; a warehouse keeps one of them. */
  repeatedIds: z.array(z.string()).exactOptional(),
  /** Further observations, one sentence each. */
  notes: z.array(z.string()).exactOptional(),
  /** Documents by id: how many were requested. */
  asked: count.exactOptional(),
  /** The newest `updated` in the list before the read. */
  newestUpdated: z.string().exactOptional(),
  /** The read ended at its lower bound, so the list may go on below it. */
  sawBound: z.boolean().exactOptional(),
  /** The list hides some records unless their status is requested. */
  hiddenFound: z.boolean().exactOptional(),
  /** Whether a record that changed its status during the read may have been missed. */
  statusCheck: statusCheck.exactOptional(),
  testModeCarried: z.boolean().exactOptional(),
  uncheckableFilters: z.array(z.string()).exactOptional(),
})

/** The result of a whole read of a list. */
export type ReadOutcome = z.infer<typeof outcomeSchema> & Pick<RangeState, 'capped' | 'hiddenFound'>

export function toOutcome(reading: Reading, repeatedIds: string[]): ReadOutcome {
  const { state, key } = reading
  const { uncheckable } = reading.checks
  if (state.range.upTo !== undefined) throw new Error('a range of a list has no verdict of its own')
  const { ignored, testMode } = state.seen
  const reasons = [
    ...state.reasons,
    ...Object.entries(ignored).map(
      ([name, times]) =>
        `the service ignores the filter ${name}: it returned ${times} records that do not match; they were left out`,
    ),
    ...(state.capped ? [`capped at ${reading.options.maxRequests} pages`] : unwatched(reading)),
  ]
  const isProven = reasons.length === 0
  const { newestUpdated } = state
  return {
    verdict: isProven ? 'proven' : 'unproven',
    reasons,
    scope: [
      ...(isProven ? provenScope(reading) : unprovenScope(reading)),
      ...bothScope(reading, uncheckable),
    ],
    notes: [
      ...(state.seen.oddNext > 0 ? [oddNext(state.seen.oddNext)] : []),
      ...state.ties
        .filter(({ records }) => records >= worthNoting)
        .map(
          (group) =>
            `${group.records} records have one \`${key}\`, ${group.at}, so they were read ${group.sweeps} times, by ${group.requests} requests`,
        ),
    ],
    completeThrough: isProven ? toTimestamp(state.completeThrough) : null,
    ...(newestUpdated !== undefined && { newestUpdated: toTimestamp(newestUpdated) }),
    clock: state.clock,
    ordering: key,
    countBefore: state.countBefore ?? null,
    countAfter: state.countAfter ?? null,
    ...state.counts,
    ties: state.ties,
    capped: state.capped,
    sawBound: state.sawBound === true,
    hiddenFound: state.hiddenFound,
    ...(state.statusCheck !== undefined && { statusCheck: state.statusCheck }),
    testModeCarried: testMode,
    uncheckableFilters: uncheckable,
    ...(repeatedIds.length > 0 && { repeatedIds }),
  }
}

/** What is not proven where the limit of requests is not reached. */
function unwatched({ options }: Reading): string[] {
  if (options.maxRequests === undefined || statusesThatHide(options).length === 0) return []
  return ['its requests are limited, so none were spent on records that the list hides by their status']
}

/** A group of one time of this many records costs more than twenty requests. */
const worthNoting = 1_000

/** The scope of a proven read. */
function provenScope(reading: Reading): string[] {
  const { options, state, key } = reading
  const { resource, filters = {} } = options
  const names = Object.keys(filters)
  const until = toTimestamp(state.completeThrough)
  const { downTo } = state.range
  const after = downTo === undefined ? '' : `after ${toTimestamp(downTo)} and `
  const matched = names.length > 0 ? ` and matched ${names.join(', ')}` : ''
  const sentences = [
    key === 'created'
      ? `Every record of ${resource.name} that was in the list${matched} throughout and was created ${after}up to ${until} is here once.`
      : `Every record of ${resource.name} that was in the list${matched} throughout, was updated since ${toTimestamp((options.updatedSince ?? 0) * 1000)} and up to ${until}, and not updated during the read, is here.`,
  ]
  if (key === 'updated' && statusesOf(resource).length > 0 && filters['status'] === undefined)
    sentences.push(
      'Records whose status changed to one that the list shows only on request are missing; the next full read finds them.',
    )
  if (key === 'updated' && resource.unmoved !== undefined) sentences.push(toUnmovedSentence(resource.unmoved))
  if (state.hiddenFound)
    sentences.push(
      'The list hides some records unless their status is requested, so each status was also read separately: a hidden record is here only if its status did not change during the read.',
    )
  return sentences
}

/** Says which changes an incremental read cannot see. */
export const toUnmovedSentence = ({ fields }: NonNullable<ListResource['unmoved']>): string =>
  `An incremental read does not see a change of ${fields.join(' or ')} alone, because the service does not move \`updated\` then: they may be as old as the last read of the whole list.`

/** The scope of an unproven read: only the records that came. */
function unprovenScope({ options, state }: Reading): string[] {
  const { resource } = options
  return [
    `${state.counts.records} records of ${resource.name} that the service listed during the read are here, each once.`,
    state.capped
      ? 'The read ended at its page limit, so later records are missing, and others may be missing too.'
      : 'Other records may be missing; it is unknown which.',
  ]
}

/** Sentences that apply whatever the verdict. */
function bothScope({ options, state }: Reading, uncheckable: string[]): string[] {
  const { rejected } = state.counts
  return [
    ...(rejected > 0 ? [`Records without a usable id, in rejected.jsonl: ${rejected}.`] : []),
    ...(uncheckable.length > 0
      ? [`The records do not show whether the service honoured ${uncheckable.join(', ')}.`]
      : []),
    ...(carriesTestMode(options.resource)
      ? []
      : ['The records do not say whether they are live or test data.']),
  ]
}

function oddNext(times: number): string {
  return `${times} responses linked to a next page other than the following one; the links were ignored`
}
