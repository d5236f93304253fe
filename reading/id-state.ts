/** What became of an id that is neither here nor answered by a 404: nothing is known of the document. */
export interface OpenId {
  id: string
  why: string
}

/** All that a fetch by id must remember to go on in another process; it stands for every step handed out. */
export interface IdState {
  version: 1
  /** ms since 1970 */
  startedAt: number
  /** How many ids, from the first on, are settled. */
  settled: number
  requests: { made: number }
  counts: {
    /** Written. */
    records: number
    /** Answered by a JSON 404. */
    missing: number
    /** Not known: refused, without an answer, or answered with something else. */
    open: number
  }
  /** How many ids were asked for. */
  countBefore: number
  /** The last id that the service answered for: it can do so again, if it is well. */
  control?: string
  /** The first ids of each sort, for people; the files have them all. */
  firstMissing: string[]
  firstOpen: OpenId[]
}

/** The account of a whole fetch by id. */
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
    version: 1,
    startedAt: options.startedAt,
    settled: 0,
    requests: { made: 0 },
    counts: { records: 0, missing: 0, open: 0 },
    countBefore: options.asked,
    firstMissing: [],
    firstOpen: [],
  }
}

/** What one id turned out to be. */
export type Settled =
  | { kind: 'record'; id: string; record: Record<string, unknown> }
  | { kind: 'missing'; id: string }
  | { kind: 'open'; id: string; why: string }

/** The state behind one more id; the one before stays as it is. */
export function settle(before: IdState, settled: Settled, requests: number): IdState {
  const { counts, firstMissing, firstOpen } = before
  const { kind, id } = settled
  const state: IdState = {
    ...before,
    settled: before.settled + 1,
    requests: { made: requests },
    counts: { ...counts },
  }
  if (kind === 'record') state.counts.records++
  if (kind === 'missing') state.counts.missing++
  if (kind === 'open') state.counts.open++
  if (kind !== 'open') state.control = id
  if (kind === 'missing' && firstMissing.length < named) state.firstMissing = [...firstMissing, id]
  if (kind === 'open' && firstOpen.length < named) state.firstOpen = [...firstOpen, { id, why: settled.why }]
  return state
}

export function toIdOutcome(options: {
  resource: string
  state: IdState
  notes: readonly string[]
}): IdOutcome {
  const { resource, state, notes } = options
  const { counts, firstMissing, firstOpen, countBefore } = state
  const reasons = firstOpen.map(({ id, why }) => `Of ${resource} ${id} nothing is known: ${why}.`)
  if (counts.open > firstOpen.length)
    reasons.push(`And so of ${counts.open - firstOpen.length} more; rejected.jsonl has them all.`)
  return {
    verdict: counts.open === 0 ? 'proven' : 'unproven',
    reasons,
    scope:
      counts.open === 0
        ? `Each of the ${countBefore} ids of ${resource} that were asked for is here once, or in missing.csv because the service answered that it does not exist.`
        : `Of the ${countBefore} ids of ${resource} that were asked for, ${counts.records} are here once and ${counts.missing} are in missing.csv because the service answered that they do not exist. Of the other ${counts.open} nothing is known.`,
    notes: [...notes],
    asked: countBefore,
    requests: state.requests.made,
    records: counts.records,
    missing: { rows: counts.missing, first: firstMissing },
  }
}
