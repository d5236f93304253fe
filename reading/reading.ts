import type { ListPage } from '../billing/reply.ts'
import type { Batch } from './intake.ts'
import type { ReadOptions, IdSet } from './options.ts'
import { identityOf } from './record.ts'
import { timesAsked, type Freshness, type Requests } from './source.ts'
import type { PassState, ReadState, ReadStep, SweptGroup } from './state.ts'
import type { Key } from './window.ts'

/** How far the clocks of one service's servers are apart at most. */
const clocksDifferMs = 5_000

/** What all passes of one read share: its options, its account, and what it hands out. */
export class Reading implements Freshness {
  readonly options: ReadOptions
  readonly state: ReadState
  readonly requests: Requests
  readonly key: Key
  /** The chain may end at a record strictly older than this, in microseconds. */
  readonly until: number
  #idSet: Promise<IdSet> | undefined

  constructor(options: ReadOptions, state: ReadState) {
    const { updatedSince, maxRequests = Infinity } = options
    this.options = options
    this.state = { ...state, counts: { ...state.counts }, seen: structuredClone(state.seen) }
    this.requests = { ...state.requests, most: maxRequests }
    this.key = updatedSince === undefined ? 'created' : 'updated'
    this.until = updatedSince === undefined ? -Infinity : updatedSince * 1000
  }

  toStep(pass: PassState, { records, rejected }: Batch): ReadStep {
    const { state, requests } = this
    state.counts.records += records.length
    state.counts.rejected += rejected.length
    const { made, oddNext } = requests
    return {
      records,
      rejected,
      // The lists in it are replaced, never changed, so that each step keeps its own.
      state: {
        ...state,
        pass,
        requests: { made, oddNext },
        counts: { ...state.counts },
        seen: { ...state.seen, ignored: { ...state.seen.ignored } },
      },
      progress: { records: state.counts.records, requests: made, total: state.countBefore },
    }
  }

  /** A response came before the list was first asked: its Date is the service's own clock. */
  serviceTime(servedAt: number): void {
    this.state.clock = 'service'
    this.state.servedAt = servedAt
    this.state.completeThrough = (servedAt - this.options.readLagMs) * 1000
  }

  /**
   * Whether a response was made before the read began. The clocks of several servers differ by a little: a response
   * that is older by no more than that counts, and the read promises only what that response could show.
   */
  isStale({ servedAt, ageMs = 0 }: ListPage): boolean {
    const { state, options } = this
    if (ageMs > options.now() - state.startedAt + clocksDifferMs) return true
    if (state.servedAt === undefined || servedAt === undefined) return false
    if (servedAt < state.servedAt - clocksDifferMs) return true
    state.completeThrough = Math.min(state.completeThrough, (servedAt - options.readLagMs) * 1000)
    return false
  }

  stayedStale(): void {
    this.because(
      `responses were older than the read, ${timesAsked} times in a row: a cache or a lagging copy answers for the service`,
    )
  }

  counted(count: number | undefined): void {
    if (count === undefined) return
    this.state.countBefore ??= count
    this.state.countAfter = count
  }

  /** A record without a key can't be placed, so its identity is kept. True if it is new. */
  takeUndated(record: unknown): boolean {
    const identity = identityOf(record)
    this.isUndated()
    if (this.state.undated.includes(identity)) return false
    this.state.undated = [...this.state.undated, identity]
    return true
  }

  isUndated(): void {
    this.because(`some records have no readable ${this.key}, so their place in the list is not known`)
  }

  /** A record that was seen under a status before the read has come, so it is not hidden. */
  met(id: string | undefined): void {
    const { watched } = this.state
    if (id === undefined || watched === undefined || !Object.hasOwn(watched, id)) return
    const { [id]: _met, ...rest } = watched
    this.state.watched = rest
  }

  because(reason: string): void {
    if (!this.state.reasons.includes(reason)) this.state.reasons = [...this.state.reasons, reason]
  }

  /** Something that the verdict rests on besides what it always does. */
  provided(sentence: string): void {
    if (!this.state.provided.includes(sentence)) this.state.provided = [...this.state.provided, sentence]
  }

  swept(group: SweptGroup): void {
    this.state.ties = [...this.state.ties, group]
  }

  /** Whether any of these ids was not read. To be asked when nothing is left to read: it counts them as read. */
  async lacksAny(ids: readonly string[]): Promise<boolean> {
    if (ids.length === 0) return false
    this.#idSet ??= this.options.idSet()
    return (await (await this.#idSet).add(ids)).includes(true)
  }

  /** What of a batch the caller has not written yet. */
  async unite({ records, rejected }: Batch): Promise<Batch> {
    if (records.length === 0 && rejected.length === 0) return { records, rejected }
    this.#idSet ??= this.options.idSet()
    const isNew = await (await this.#idSet).add(records.map(identityOf))
    const kept = records.filter((_, at) => isNew[at])
    this.state.counts.duplicatesDropped += records.length - kept.length
    return { records: kept, rejected }
  }
}
