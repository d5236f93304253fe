/** An id without a result: the document is neither here nor answered by a 404. */
export interface OpenId {
  id: string
  why: string
}

/** Everything a fetch by id needs to resume in another process; covers every step yielded so far. */
export interface IdState {
  /** ms since 1970 */
  startedAt: number
  /** Number of ids processed, from the first on. */
  processed: number
  requests: { made: number }
  counts: {
    /** Written. */
    records: number
    /** Answered by a JSON 404. */
    missing: number
    /** Unknown: refused, unanswered, or answered with another document. */
    open: number
  }
  /** Number of ids requested. */
  countBefore: number
  /** The last id that the service answered for; a healthy service answers for it again. */
  control?: string
  /** The first ids of each kind, for messages; the files have all of them. */
  firstMissing: string[]
  firstOpen: OpenId[]
}

/** The result of a fetch by id. */
export interface IdOutcome {
  verdict: 'proven' | 'unproven'
  reasons: string[]
  scope: string
  notes: string[]
  asked: number
  requests: number
  records: number
  missing: { rows: number; first: string[] }
}

const named = 20

export function newIdState(options: { startedAt: number; asked: number }): IdState {
  return {
    startedAt: options.startedAt,
    processed: 0,
    requests: { made: 0 },
    counts: { records: 0, missing: 0, open: 0 },
    countBefore: options.asked,
    firstMissing: [],
    firstOpen: [],
  }
}

/** The result for one id. */
export type IdResult =
  | { kind: 'record'; id: string; record: Record<string, unknown> }
  | { kind: 'missing'; id: string }
  | { kind: 'open'; id: string; why: string }

/** The state after one more id; the previous state is not changed. */
export function addResult(before: IdState, processed: IdResult, requests: number): IdState {
  const { counts, firstMissing, firstOpen } = before
  const { kind, id } = processed
  const state: IdState = {
    ...before,
    processed: before.processed + 1,
    requests: { made: requests },
    counts: { ...counts },
  }
  if (kind === 'record') state.counts.records++
  if (kind === 'missing') state.counts.missing++
  if (kind === 'open') state.counts.open++
  if (kind !== 'open') state.control = id
  if (kind === 'missing' && firstMissing.length < named) state.firstMissing = [...firstMissing, id]
  if (kind === 'open' && firstOpen.length < named)
    state.firstOpen = [...firstOpen, { id, why: processed.why }]
  return state
}

export function toIdOutcome(options: {
  resource: string
  state: IdState
  notes: readonly string[]
}): IdOutcome {
  const { resource, state, notes } = options
  const { counts, firstMissing, firstOpen, countBefore } = state
  const reasons = firstOpen.map(({ id, why }) => `${resource} ${id} could not be read: ${why}.`)
  if (counts.open > firstOpen.length)
    reasons.push(
      `${counts.open - firstOpen.length} more could not be read; rejected.jsonl lists all of them.`,
    )
  return {
    verdict: counts.open === 0 ? 'proven' : 'unproven',
    reasons,
    scope:
      counts.open === 0
        ? `Each of the ${countBefore} requested ids of ${resource} is here once, or in missing.csv because the service answered that it does not exist.`
        : `Of the ${countBefore} requested ids of ${resource}, ${counts.records} are here once and ${counts.missing} are in missing.csv because the service answered that they do not exist. Could not be read: ${counts.open}.`,
    notes: [...notes],
    asked: countBefore,
    requests: state.requests.made,
    records: counts.records,
    missing: { rows: counts.missing, first: firstMissing },
  }
}
