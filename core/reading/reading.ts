import { clocksDifferMs, type ListPage } from '../billing/reply.ts'
import type { Batch } from './record-checks.ts'
import type { Identity, IdSet, ReadOptions } from './options.ts'
import { toInstant, type Instant } from './instant.ts'
import { identityOf } from './record.ts'
import { maxTries, type Freshness, type Requests } from './source.ts'
import type { PassState, ReadState, ReadStep, SweptGroup } from './state.ts'
import type { Key } from './chain/window.ts'

/** The state that all passes of one read share. */
export class Reading implements Freshness {
  readonly options: ReadOptions
  readonly state: ReadState
  readonly requests: Requests
  readonly key: Key
  /** Only what was updated since this instant is read. */
  readonly since: Instant
  #idSet: Promise<IdSet> | undefined

  constructor(options: ReadOptions, state: ReadState) {
    const { updatedSince, maxRequests = Infinity } = options
    this.options = options
    this.state = { ...state, counts: { ...state.counts }, seen: structuredClone(state.seen) }
    this.requests = { ...state.requests, most: maxRequests }
    this.key = updatedSince === undefined ? 'created' : 'updated'
    this.since = updatedSince === undefined ? -Infinity : updatedSince * 1000
  }

  /**
   * Whether an instant is older than all that is read: there the chain may end. A bound is compared as it is, never
   * shifted by a microsecond: beyond 2^53 that can be the same number, and both ranges would take what lies at it.
   */
  isBelow(instant: Instant): boolean {
    return instant < this.since || instant <= (this.state.range?.downTo ?? -Infinity)
  }

  toStep(pass: PassState, { records, rejected }: Batch): ReadStep {
    const { state, requests } = this
    state.counts.records += records.length
    state.counts.rejected += rejected.length
    const { made, oddNext } = requests
    return {
      records,
      rejected,
      // Arrays in the state are replaced, never mutated, so each step keeps its own.
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

  /** Sets the service's clock from the Date of a response that came before the first list request. */
  serviceTime(servedAt: number): void {
    this.state.clock = 'service'
    this.state.servedAt = servedAt
    this.state.completeThrough = (servedAt - this.options.readLagMs) * 1000
  }

  /**
   * Whether a response was generated before the read began. Servers' clocks differ a little: a response that is older by
   * no more than that is accepted, and the read promises only what that response could show.
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
    this.addReason(
      `responses were older than the read, ${maxTries} times in a row: a cache or a lagging replica is answering`,
    )
  }

  counted(count: number | undefined): void {
    if (count === undefined) return
    this.state.countBefore ??= count
    this.state.countAfter = count
  }

  /**
   * Remembers a record without a key, which has no place, by its identity. Returns true if it is to be written. In a
   * range it never is: other ranges may meet it too, so the range breaks instead.
   */
  takeUndated(record: unknown): boolean {
    const identity = identityOf(record)
    this.isUndated()
    if (this.state.undated.includes(identity)) return false
    this.state.undated = [...this.state.undated, identity]
    return this.state.range === undefined
  }

  isUndated(): void {
    this.addReason(this.undatedReason)
  }

  get undatedReason(): string {
    return `some records have no readable ${this.key}, so their place in the list is unknown`
  }

  /** Marks a record that was sampled under a status before the read as seen: it is not hidden. */
  markSeen(id: string | undefined): void {
    const { watched } = this.state
    if (id === undefined || watched === undefined || !Object.hasOwn(watched, id)) return
    const { [id]: _seen, ...rest } = watched
    this.state.watched = rest
  }

  addReason(reason: string): void {
    if (!this.state.reasons.includes(reason)) this.state.reasons = [...this.state.reasons, reason]
  }

  swept(group: SweptGroup): void {
    this.state.ties = [...this.state.ties, group]
  }

  /** Whether any of these records was not read. Call it last: it adds them to the set. */
  async lacksAny(records: readonly Identity[]): Promise<boolean> {
    if (records.length === 0) return false
    this.#idSet ??= this.options.idSet()
    return (await (await this.#idSet).add(records)).includes(true)
  }

  /** The records of a batch that the caller has not written yet. */
  async unite({ records, rejected }: Batch): Promise<Batch> {
    if (records.length === 0 && rejected.length === 0) return { records, rejected }
    this.#idSet ??= this.options.idSet()
    const isNew = await (
      await this.#idSet
    ).add(records.map((record) => ({ id: identityOf(record), created: toInstant(record['created']) })))
    const kept = records.filter((_, at) => isNew[at])
    this.state.counts.duplicatesDropped += records.length - kept.length
    return { records: kept, rejected }
  }
}
