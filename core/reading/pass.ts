import type { ListPage } from '../billing/reply.ts'
import { Frontier } from './chain/frontier.ts'
import { createRecordChecks, type Batch, type RecordChecks } from './record-checks.ts'
import type { Reading } from './reading.ts'
import { toInstant } from './instant.ts'
import { idOf, identityOf, isRecord } from './record.ts'
import { Source } from './source.ts'
import type { PassState, ReadStep } from './state.ts'
import { oldestOf, type Window } from './chain/window.ts'

/** With more records without a key than this, the list is read page by page. */
export const maxUndated = 1000

/** One pass over the list with one set of filters, and its progress. */
export class Pass {
  readonly source: Source
  readonly frontier: Frontier
  readonly checks: RecordChecks
  phase: PassState['phase']
  place: number | undefined
  page: number
  windows: number
  readonly #reading: Reading

  constructor(reading: Reading, { state, status }: { state: PassState; status?: string | undefined }) {
    const { options } = reading
    const filters = { ...options.filters, ...(status !== undefined && { status }) }
    this.#reading = reading
    this.phase = state.phase
    this.place = state.place
    this.page = state.page
    this.windows = state.windows
    this.frontier = Frontier.from(state.frontier)
    this.source = new Source({
      key: reading.key,
      filters,
      fetchPage: options.fetchPage,
      requests: reading.requests,
      freshness: reading,
      sizes: state.sizes,
      size: state.size,
      idle: state.idle,
    })
    this.checks = createRecordChecks({ ...options, filters, seen: reading.state.seen })
  }

  toState(): PassState {
    const { phase, place, page, windows } = this
    const { sizes, size, idle } = this.source
    const frontier = this.frontier.toState()
    return {
      phase,
      page,
      windows,
      idle,
      sizes,
      ...(size !== undefined && { size }),
      ...(frontier && { frontier }),
      ...(place !== undefined && { place }),
    }
  }

  /**
   * Why the chain ends here although nothing broke: a list that grows as fast as it is read has no end. A list at rest
   * takes about 1.15 windows for as many records as one may hold.
   */
  get endless(): string | undefined {
    const { size = 0, sizes } = this.source
    if (this.windows <= 100 + (4 * size) / sizes.most) return undefined
    return `the list grows as fast as it is read: it had ${size} records when the read began, and ${this.windows} windows did not reach its end`
  }

  /** Takes the new records of a window that links, newest first, and moves the frontier to its oldest record. */
  take(window: Window): Promise<ReadStep> {
    const batch = this.takeFrom(window)
    const oldest = oldestOf(window)
    this.place = placeAfter(window, oldest)
    this.#reading.state.counts.windows++
    // What was shown says more than a count, which a service may not know.
    if (this.windows < 2 && !window.descending) this.source.size = window.low + window.records.length
    this.windows++
    this.source.idle = 0
    return this.step(batch)
  }

  /** The new records of a window; with `only`, just those with that key. */
  takeFrom(window: Window, only?: number): Batch {
    const { state } = this.#reading
    const { records, keys, descending } = window
    const batch: Batch = { records: [], rejected: [] }
    const length = records.length
    for (let step = 0; step < length; step++) {
      const at = descending ? step : length - 1 - step
      const key = keys[at] ?? NaN
      const record = records[at]
      const instant = descending ? -key : key
      if (only !== undefined && instant !== only) continue
      // Not requested: the last window of the chain reaches below the bound.
      if (this.#reading.isBelow(instant)) continue
      const isNew = Number.isNaN(key)
        ? this.#reading.takeUndated(record)
        : this.frontier.take(instant, identityOf(record))
      if (isNew) this.#add(batch, record)
      else state.counts.duplicatesDropped++
    }
    return batch
  }

  /** The new records of a page: those not in the caller's set of written ids. */
  async takePage(page: ListPage): Promise<ReadStep> {
    const batch: Batch = { records: [], rejected: [] }
    for (const record of page.records) {
      const instant = isRecord(record) ? toInstant(record[this.source.key]) : undefined
      if (instant === undefined) this.#reading.isUndated()
      this.#add(batch, record)
    }
    return this.step(await this.#reading.unite(batch))
  }

  /** A step to yield, also without records, so that the caller can stop between any two requests. */
  async step(batch: Batch = { records: [], rejected: [] }): Promise<ReadStep> {
    const { state } = this.#reading
    const apart = state.statusesRead >= 0
    if (!apart) this.#reading.counted(this.source.count)
    // Over `updated`, a lagging replica may still show a record at its old place, where it looks new to the frontier. A
    // record without a key in one response may have one in another.
    const mayRepeat =
      apart || this.source.key === 'updated' || (state.undated.length > 0 && state.range === undefined)
    // Page by page, this has been done already.
    const isUnited = this.phase === 'pages' || !mayRepeat
    return this.#reading.toStep(this.toState(), isUnited ? batch : await this.#reading.unite(batch))
  }

  #add(batch: Batch, record: unknown): void {
    this.checks.add(batch, record)
    this.#reading.markSeen(idOf(record))
  }
}

/** The place of the oldest record that is strictly newer than the oldest one of this window. */
function placeAfter(window: Window, oldest: number): number | undefined {
  const { low, keys, descending, count } = window
  if (!descending) {
    const above = keys.findIndex((key) => key > oldest)
    return low + (above === -1 ? keys.length : above)
  }
  const newer = keys.findIndex((key) => key === -oldest)
  return count === undefined ? undefined : Math.max(0, count - low - Math.max(0, newer))
}
