import { BillingError, Forbidden, NotFound, Refused, Unauthorized } from '../billing/errors.ts'
import { newIdState, settle, toIdOutcome, type IdOutcome, type IdState, type Settled } from './id-state.ts'
import { TestModeMismatch } from './intake.ts'
import { idOf, type SourceRecord } from './record.ts'
import type { Progress } from './state.ts'

export interface ReadByIdOptions {
  /** The name of the documents. */
  resource: string
  /** The ids from the first that `state` has not settled on, each once. */
  ids: AsyncIterable<string>
  /** How many there are in all. */
  asked: number
  /** One document, tried as often as it is worth it. */
  fetchRecord(of: { id: string; signal: AbortSignal }): Promise<SourceRecord>
  testMode: boolean
  /** Requests in flight, from 1. */
  concurrency: number
  now(): number
  /** What else a person may want to know of the ids. */
  notes: readonly string[]
  state?: IdState
}

/** What became of the next id. */
export interface IdStep {
  settled: Settled
  state: IdState
  progress: Progress
}

/**
 * Reads documents by id, in the order of the ids, several in flight. Proven where each id came back as the document
 * of that id or was answered by a 404 in JSON, which only the service gives.
 *
 * An id whose answer fails for good stays open, and the others go on, if the service answers for another id at the
 * same time; otherwise it is away, and the failure is thrown. Throws `TestModeMismatch`, `Unauthorized`, `Forbidden`.
 */
export async function* readById(options: ReadByIdOptions): AsyncGenerator<IdStep, IdOutcome> {
  const { resource, ids, asked, concurrency, notes } = options
  let state = options.state ?? newIdState({ startedAt: options.now(), asked })
  let made = state.requests.made
  const closed = new AbortController()
  const ask = async (id: string): Promise<Settled> => {
    made++
    return toSettled(options, id, await options.fetchRecord({ id, signal: closed.signal }).catch(unlessSaid))
  }
  const flying: { id: string; answer: Promise<Settled> }[] = []
  const source = ids[Symbol.asyncIterator]()
  try {
    for (;;) {
      while (flying.length < concurrency) {
        const next = await source.next()
        if (next.done === true) break
        const answer = ask(next.value)
        // It may never be looked at, where the read is closed before.
        answer.catch(() => undefined)
        flying.push({ id: next.value, answer })
      }
      const head = flying.shift()
      if (head === undefined) break
      const settled = await head.answer.catch(async (error: unknown) => {
        if (!isOwnTrouble(error) || !(await isWell({ state, flying, ask }))) throw error
        // The service is well, so it has a second look at what is wrong with this one.
        return ask(head.id).catch((error: unknown): Settled => {
          if (!isOwnTrouble(error)) throw error
          return { kind: 'open', id: head.id, why: error.message }
        })
      })
      state = settle(state, settled, made)
      const { records, missing, open } = state.counts
      yield { settled, state, progress: { records, requests: made, total: asked - missing - open } }
    }
  } finally {
    closed.abort()
    await source.return?.()
  }
  return toIdOutcome({ resource, state, notes })
}

/** The service has said that there is no such document, or that it does not take the id. */
function unlessSaid(error: unknown): NotFound | Refused {
  if ((error instanceof Refused || error instanceof NotFound) && error.byService) return error
  throw error
}

function toSettled(
  { resource, testMode }: ReadByIdOptions,
  id: string,
  answer: SourceRecord | NotFound | Refused,
): Settled {
  if (answer instanceof NotFound) return { kind: 'missing', id }
  if (answer instanceof Refused) return { kind: 'open', id, why: answer.message }
  const mode = answer['test_mode']
  if (typeof mode === 'boolean' && mode !== testMode) throw new TestModeMismatch({ resource, id, testMode })
  const got = idOf(answer)
  if (got === id) return { kind: 'record', id, record: answer }
  const why = `the service answered with ${got === undefined ? 'a document without an id' : `the document ${got}`}`
  return { kind: 'open', id, why }
}

/** What may be wrong with one document and not with the others. */
const isOwnTrouble = (error: unknown): error is BillingError =>
  error instanceof BillingError && !(error instanceof Unauthorized || error instanceof Forbidden)

/** Whether the service answers for another id: one it has answered for before, else one that is in flight. */
async function isWell(of: {
  state: IdState
  flying: readonly { answer: Promise<Settled> }[]
  ask: (id: string) => Promise<Settled>
}): Promise<boolean> {
  const { state, flying, ask } = of
  const others = state.control === undefined ? flying.map(({ answer }) => answer) : [ask(state.control)]
  const answers = await Promise.allSettled(others)
  return answers.some((answer) => answer.status === 'fulfilled' && answer.value.kind !== 'open')
}
