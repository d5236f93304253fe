import type { ListPage } from '../billing/reply.ts'
import { undatedReason, WindowFetcher } from './fetch-window.ts'
import { createFilters, type Filters } from '../billing/resources/filters.ts'
import { toInstant, type Instant } from '../billing/instants.ts'
import {
  statusesToWatch,
  type Identity,
  type RangeState,
  type ReadOptions,
  type ReadStep,
} from './range-state.ts'
import { idOf, identityOf, isRecord, TestModeMismatch } from './record.ts'
import { Frontier, oldestOf, placeAbove, type Key, type Window } from './window.ts'

type Batch = Pick<ReadStep, 'records' | 'rejected'>

/** A read of a range that is in progress: its state, and what resuming it needs besides. */
export class Reading {
  readonly options: ReadOptions
  readonly state: RangeState
  readonly key: Key
  readonly filters: Readonly<Record<string, string>>
  readonly frontier: Frontier
  readonly fetcher: WindowFetcher
  readonly checks: Filters

  constructor(options: ReadOptions, state: RangeState) {
    const status = statusesToWatch(options)[state.statusesRead]
    this.options = options
    this.state = structuredClone(state)
    this.key = options.updatedSince === undefined ? 'created' : 'updated'
    this.filters = { ...options.filters, ...(status !== undefined && { status }) }
    this.frontier = Frontier.from(state.frontier)
    this.fetcher = new WindowFetcher(this)
    this.checks = createFilters(options.resource, this.filters)
  }

  /**
   * Whether an instant is older than all that is read: there the chain may end. A bound is compared as it is, never
   * shifted by a microsecond: beyond 2^53 that can be the same number, and both ranges would take what lies at it.
   */
  isBelow(instant: Instant): boolean {
    return instant <= (this.state.range.downTo ?? -Infinity)
  }

  addReason(reason: string): void {
    if (!this.state.reasons.includes(reason)) this.state.reasons.push(reason)
  }

  /**
   * Why the chain ends here although nothing broke: a list that grows as fast as it is read has no end. A list at rest
   * takes about 1.15 windows for as many records as one may hold.
   */
  get endless(): string | undefined {
    const { size = 0, linked } = this.state
    if (linked <= 100 + (4 * size) / this.fetcher.sizes.most) return undefined
    return `the list grows as fast as it is read: it had ${size} records when the read began, and ${linked} windows did not reach its end`
  }

  /** Takes the new records of a window that links, newest first, and moves the frontier to its oldest record. */
  take(window: Window): Promise<ReadStep> {
    const { state } = this
    const batch = this.takeFrom(window)
    state.place = placeAfter(window, oldestOf(window))
    // What was shown says more than a count, which a service may not know.
    if (state.linked < 2 && !window.descending) state.size = window.low + window.records.length
    state.counts.windows++
    state.linked++
    state.idle = 0
    return this.step(batch)
  }

  /** The new records of a window; with `only`, just those with that key. */
  takeFrom(window: Window, only?: Instant): Batch {
    const { records, keys, descending } = window
    const batch: Batch = { records: [], rejected: [] }
    const { length } = records
    for (let step = 0; step < length; step++) {
      const index = descending ? step : length - 1 - step
      const key = keys[index] ?? NaN
      const record = records[index]
      const instant = descending ? -key : key
      if (only !== undefined && instant !== only) continue
      // Not requested: the last window of the chain reaches below the bound.
      if (this.isBelow(instant)) continue
      if (this.frontier.take(instant, identityOf(record))) this.#add(batch, record)
      else this.state.counts.duplicatesDropped++
    }
    return batch
  }

  /** The new records of a page: those not in the caller's set of written ids. */
  async takePage({ records }: ListPage): Promise<ReadStep> {
    const batch: Batch = { records: [], rejected: [] }
    for (const record of records) {
      if (!isRecord(record) || toInstant(record[this.key]) === undefined)
        this.addReason(undatedReason(this.key))
      this.#add(batch, record)
    }
    return this.#toStep(await this.#unite(batch))
  }

  /** A step to yield, also without records, so that the caller can stop between any two requests. */
  async step(batch: Batch = { records: [], rejected: [] }): Promise<ReadStep> {
    const { state } = this
    const { count } = this.fetcher
    const isStatus = state.statusesRead >= 0
    if (!isStatus && count !== undefined) {
      state.countBefore ??= count
      state.countAfter = count
    }
    // Over `updated`, a lagging replica may still show a record at its old place, where it looks new to the frontier.
    const mayRepeat = isStatus || this.key === 'updated'
    // Page by page, this has been done already.
    const isUnited = state.phase === 'pages' || !mayRepeat
    return this.#toStep(isUnited ? batch : await this.#unite(batch))
  }

  #toStep({ records, rejected }: Batch): ReadStep {
    const { state } = this
    const { counts, requests } = state
    counts.records += records.length
    counts.rejected += rejected.length
    const frontier = this.frontier.toState()
    if (frontier !== undefined) state.frontier = frontier
    const progress = { records: counts.records, requests: requests.made, total: state.countBefore }
    return { records, rejected, state: structuredClone(state), progress }
  }

  /** Whether any of these records was not read. Call it last: it adds them to the set. */
  async lacksAny(records: readonly Identity[]): Promise<boolean> {
    if (records.length === 0) return false
    return (await (await this.options.idSet()).add(records)).includes(true)
  }

  /**
   * Checks a new record and adds it to the batch.
   * @throws {TestModeMismatch}
   */
  #add(batch: Batch, record: unknown): void {
    const { seen, watched } = this.state
    const id = idOf(record)
    if (!isRecord(record) || id === undefined) {
      batch.rejected.push(record)
      return
    }
    const { test_mode: mode } = record
    if (typeof mode === 'boolean') {
      seen.testMode = true
      const { resource, testMode } = this.options
      if (mode !== testMode) throw new TestModeMismatch({ resource: resource.name, id, testMode })
    }
    const broken = this.checks.broken(record)
    if (broken === undefined) batch.records.push(record)
    else seen.ignored[broken] = (seen.ignored[broken] ?? 0) + 1
    // Sampled under a status before the read: it is not hidden.
    if (watched !== undefined) delete watched[id]
  }

  /** The records of a batch that the caller has not written yet. */
  async #unite({ records, rejected }: Batch): Promise<Batch> {
    if (records.length === 0 && rejected.length === 0) return { records, rejected }
    const ids = await this.options.idSet()
    const isNew = await ids.add(
      records.map((record) => ({ id: identityOf(record), created: toInstant(record['created']) })),
    )
    const fresh = records.filter((_, index) => isNew[index])
    this.state.counts.duplicatesDropped += records.length - fresh.length
    return { records: fresh, rejected }
  }
}

/** The place of the oldest record that is strictly newer than the oldest one of this window. */
function placeAfter(window: Window, oldest: Instant): number | undefined {
  const { low, keys, descending, count } = window
  if (!descending) return placeAbove(window, oldest)
  const newer = keys.findIndex((key) => key === -oldest)
  return count === undefined ? undefined : Math.max(0, count - low - Math.max(0, newer))
}
