import type { z } from 'zod'
import { BillingError, Forbidden, NotFound, Refused, Unauthorized } from '../billing/errors.ts'
import { clocksDifferMs, type FetchedDocument } from '../billing/reply.ts'
import { maxTries } from './fetch-window.ts'
import type { outcomeSchema } from './outcome.ts'
import { idOf, type SourceRecord, TestModeMismatch } from './record.ts'

/** Everything a fetch by id needs to resume in another process; covers every step yielded so far. */
export interface IdState {
  /** ms since 1970 */
  startedAt: number
  /** Number of ids processed, from the first on. */
  processed: number
  counts: {
    requests: number
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
  /** The first ids that are missing or open, for messages; the files have all of them. */
  firstMissing: string[]
  firstOpen: { id: string; why: string }[]
}

/** The result for one id. `open`: the document is neither here nor answered by a 404. */
type IdResult =
  | { kind: 'record'; id: string; record: Record<string, unknown> }
  | { kind: 'missing'; id: string }
  | { kind: 'open'; id: string; why: string }

/** The facts of a list that a fetch by id has no use for. */
const noList = {
  completeThrough: null,
  clock: 'local',
  ordering: 'as asked',
  countBefore: null,
  countAfter: null,
  windows: 0,
  linksRepaired: 0,
  duplicatesDropped: 0,
} as const

/** The result of a fetch by id. */
export type IdOutcome = z.infer<typeof outcomeSchema> & {
  asked: number
  missing: { rows: number; first: string[] }
}

export interface ReadByIdOptions {
  /** The name of the documents. */
  resource: string
  /** Each once. */
  ids: readonly string[]
  /** Fetches one document, with its own retries. */
  fetchDocument(id: string): Promise<FetchedDocument>
  testMode: boolean
  /** Requests in flight, from 1. */
  concurrency: number
  now(): number
  state?: IdState | undefined
}

/** What came of the next id. */
export interface IdStep {
  records: SourceRecord[]
  /** It does not exist. */
  missing: string[]
  /** Its result is unknown, and why. */
  open: { id: string; why: string }[]
  state: IdState
}

/**
 * Reads documents by id, in the order of the ids, several at once. The result is proven if each id returned the
 * document with that id or a 404 in JSON, which only the service sends.
 *
 * If an id fails for good while the service answers for another id, it stays open and the read continues. If the service
 * does not answer for any id, the failure is thrown.
 *
 * @throws {TestModeMismatch}
 * @throws {Unauthorized}
 * @throws {Forbidden}
 */
export async function* readById(options: ReadByIdOptions): AsyncGenerator<IdStep, void> {
  const { ids, concurrency } = options
  const state = structuredClone(options.state) ?? newState(options)
  const ask = async (id: string): Promise<IdResult> => {
    for (let time = 1; time <= maxTries; time++) {
      state.counts.requests++
      const answer = await options.fetchDocument(id).catch(orNotByService)
      const isStale = (answer.ageMs ?? 0) > options.now() - state.startedAt + clocksDifferMs
      if (!isStale) return toResult(options, id, answer)
    }
    const why = `its answers were older than the fetch, ${maxTries} times in a row: a cache answers for the service`
    return { kind: 'open', id, why }
  }
  while (state.processed < ids.length) {
    const batch = ids.slice(state.processed, state.processed + concurrency)
    const answers = await Promise.allSettled(batch.map(ask))
    for (const [index, id] of batch.entries()) {
      const answer = answers[index]!
      const result =
        answer.status === 'fulfilled' ? answer.value : await askAgain(id, { ...answer, state, answers, ask })
      addResult(state, result)
      yield {
        records: result.kind === 'record' ? [result.record] : [],
        missing: result.kind === 'missing' ? [result.id] : [],
        open: result.kind === 'open' ? [result] : [],
        state: structuredClone(state),
      }
    }
  }
}

/**
 * Asks once more for an id that failed, if the service answers for another one: one that it answered for before, else one
 * that was asked for at the same time. The failure is of this id alone then.
 * @throws the failure, if it is not
 */
async function askAgain(
  id: string,
  of: {
    reason: unknown
    state: IdState
    answers: readonly PromiseSettledResult<IdResult>[]
    ask: (id: string) => Promise<IdResult>
  },
): Promise<IdResult> {
  const { reason, state, ask } = of
  if (!isOfOneDocument(reason)) throw reason
  const others = state.control === undefined ? of.answers : await Promise.allSettled([ask(state.control)])
  if (!others.some((other) => other.status === 'fulfilled' && other.value.kind !== 'open')) throw reason
  return await ask(id).catch((error: unknown): IdResult => {
    if (!isOfOneDocument(error)) throw error
    return { kind: 'open', id, why: error.message }
  })
}

/** Returns the service's own 404 or refusal of the id; throws any other error. */
function orNotByService(error: unknown): NotFound | Refused {
  if ((error instanceof Refused || error instanceof NotFound) && error.byService) return error
  throw error
}

function toResult(
  { resource, testMode }: ReadByIdOptions,
  id: string,
  answer: FetchedDocument | NotFound | Refused,
): IdResult {
  if (answer instanceof NotFound) return { kind: 'missing', id }
  if (answer instanceof Refused) return { kind: 'open', id, why: answer.message }
  const { record } = answer
  const mode = record['test_mode']
  if (typeof mode === 'boolean' && mode !== testMode) throw new TestModeMismatch({ resource, id, testMode })
  const got = idOf(record)
  if (got === id) return { kind: 'record', id, record }
  const why = `the service answered with ${got === undefined ? 'a document without an id' : `the document ${got}`}`
  return { kind: 'open', id, why }
}

/** Whether the error may concern this document only. */
const isOfOneDocument = (error: unknown): error is BillingError =>
  error instanceof BillingError && !(error instanceof Unauthorized || error instanceof Forbidden)

/** How many ids of each kind are named. */
const named = 20

const newState = (options: ReadByIdOptions): IdState => ({
  startedAt: options.now(),
  processed: 0,
  counts: { requests: 0, records: 0, missing: 0, open: 0 },
  countBefore: options.ids.length,
  firstMissing: [],
  firstOpen: [],
})

function addResult(state: IdState, result: IdResult): void {
  const { counts, firstMissing, firstOpen } = state
  const { kind, id } = result
  state.processed++
  if (kind !== 'open') state.control = id
  if (kind === 'record') counts.records++
  else if (kind === 'missing') {
    counts.missing++
    if (firstMissing.length < named) firstMissing.push(id)
  } else {
    counts.open++
    if (firstOpen.length < named) firstOpen.push({ id, why: result.why })
  }
}

/** @param options.notes further observations for the report */
export function toIdOutcome(
  state: IdState,
  { resource, notes }: { resource: string; notes: readonly string[] },
): IdOutcome {
  const { counts, firstMissing, firstOpen, countBefore } = state
  const reasons = firstOpen.map(({ id, why }) => `${resource} ${id} could not be read: ${why}.`)
  const unnamed = counts.open - firstOpen.length
  if (unnamed > 0) reasons.push(`${unnamed} more could not be read; rejected.jsonl lists all of them.`)
  return {
    verdict: counts.open === 0 ? 'proven' : 'unproven',
    reasons,
    scope: [
      counts.open === 0
        ? `Each of the ${countBefore} requested ids of ${resource} is here once, or in missing.csv because the service answered that it does not exist.`
        : `Of the ${countBefore} requested ids of ${resource}, ${counts.records} are here once and ${counts.missing} are in missing.csv because the service answered that they do not exist. Could not be read: ${counts.open}.`,
    ],
    notes: [...notes],
    asked: countBefore,
    requests: counts.requests,
    records: counts.records,
    missing: { rows: counts.missing, first: firstMissing },
    ...noList,
    ties: [],
  }
}
