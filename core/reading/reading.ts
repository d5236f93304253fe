import { toInstant, toTimestamp, type Instant } from '../billing/instants.ts'
import type { ListPage } from '../billing/reply.ts'
import { createFilters, type Filters } from '../billing/resources/filters.ts'
import { toRangeLine, toWindowLine, type StepLine } from './certificate.ts'
import { usualSizes, type Sizes } from './find-window.ts'
import {
  statusesToWatch,
  type Identity,
  type RangeState,
  type ReadOptions,
  type ReadStep,
} from './range-state.ts'
import { idOf, identityOf, isRecord, TestModeMismatch } from './record.ts'
import {
  Frontier,
  oldestOf,
  placeAbove,
  undatedReason,
  type Key,
  type PageChoice,
  type Window,
} from './window.ts'

/** A page that the service refused, and what it said. */
interface RefusedPage extends PageChoice {
  message: string | undefined
}

/**
 * A read of a range that is in progress: its state, which a step carries, and what follows from it. All that is read
 * becomes part of it in `step`, whichever way it was found.
 */
export class Reading {
  readonly options: ReadOptions
  readonly state: RangeState
  readonly key: Key
  readonly filters: Readonly<Record<string, string>>
  readonly frontier: Frontier
  readonly checks: Filters
  /** The `count` of the last response. */
  count: number | undefined
  /** The lowest page that the service refused, while none as far was served. */
  refused: RefusedPage | undefined
  /** Lines of the certificate that no step has yielded yet. */
  #lines: StepLine[] = []
  /** The state of the last step. */
  #last: RangeState

  constructor(options: ReadOptions, state: RangeState) {
    const status = statusesToWatch(options)[state.statusesRead]
    this.options = options
    this.state = structuredClone(state)
    this.#last = state
    this.key = options.updatedSince === undefined ? 'created' : 'updated'
    this.filters = { ...options.filters, ...(status !== undefined && { status }) }
    this.frontier = Frontier.from(state.frontier)
    this.checks = createFilters(options.resource, this.filters)
  }

  get sizes(): Sizes {
    return this.state.sizes ?? usualSizes
  }

  /** Whether no further request may be made. */
  get isUsedUp(): boolean {
    return this.state.counts.requests >= (this.options.maxRequests ?? Infinity)
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
    if (linked <= 100 + (4 * size) / this.sizes.most) return undefined
    return `the list grows as fast as it is read: it had ${size} records when the read began, and ${linked} windows did not reach its end`
  }

  /** Adds the line of the certificate with which a pass begins, once. */
  begin(): void {
    const { state, options, filters } = this
    if (state.begun) return
    state.begun = true
    this.certify(
      toRangeLine({
        ...state,
        lag: state.lagMs,
        statuses: statusesToWatch(options),
        status: state.statusesRead >= 0 ? filters['status'] : undefined,
      }),
    )
  }

  /** Adds a line of the certificate that takes no record. */
  certify(line: StepLine): void {
    this.#lines.push(line)
  }

  /** Adds an empty window: where both ends of the list are empty, so is the list. */
  certifyEmpty(window: Window): void {
    this.certify({ ...this.#toLine(window), taken: 0 })
  }

  /** Takes the new records of a window that links, newest first, and moves the frontier to its oldest record. */
  take(window: Window): Promise<ReadStep> {
    const { state } = this
    const line = this.#toLine(window)
    const fresh = this.#newIn(window)
    state.place = placeAfter(window, oldestOf(window))
    // What was shown says more than a count, which a service may not know.
    if (state.linked < 2 && !window.descending) state.size = window.low + window.records.length
    state.counts.windows++
    state.linked++
    state.idle = 0
    if (this.isBelow(oldestOf(window))) state.sawBound = true
    state.sawEnd = window.fromStart || state.sawBound === true
    return this.step(fresh, line)
  }

  /** Before its records are taken, which moves the frontier. */
  #toLine(window: Window) {
    const { key, state, frontier } = this
    const { records, keys, descending } = window
    let [newer, known, twice, beyond] = [0, 0, 0, 0]
    const shown = new Set<string>()
    for (const [index, place] of keys.entries()) {
      const instant = descending ? -place : place
      if (this.isBelow(instant)) beyond++
      else if (instant > frontier.at) newer++
      else {
        const identity = identityOf(records[index])
        const record = `${instant} ${identity}`
        if (shown.has(record)) twice++
        else if (instant === frontier.at && frontier.ids.has(identity)) known++
        shown.add(record)
      }
    }
    const line = toWindowLine(window, { key, datedAt: state.datedAt, newer, known, twice, beyond })
    state.datedAt = window.servedAt ?? state.datedAt
    return line
  }

  /** Takes the new records of a window that have one time. */
  takeTied(window: Window, instant: Instant): Promise<ReadStep> {
    const fresh = this.#newIn(window, instant)
    return this.step(fresh, fresh.length > 0 ? { tied: toTimestamp(instant) } : undefined)
  }

  /** Takes the records of a page: those not in the caller's set of written ids. */
  takePage({ records }: ListPage): Promise<ReadStep> {
    if (records.some((record) => !isRecord(record) || toInstant(record[this.key]) === undefined))
      this.addReason(undatedReason(this.key))
    return this.step(records)
  }

  /**
   * Checks new records, adds them to the state, and returns the step to yield: also without records, so that the caller
   * can stop between any two requests.
   * @param line of the certificate, for what is found
   * @throws {TestModeMismatch}
   */
  async step(
    found: readonly unknown[] = [],
    line?: ReturnType<typeof toWindowLine> | { tied: string },
  ): Promise<ReadStep> {
    const { state, count } = this
    const isStatus = state.statusesRead >= 0
    if (!isStatus && count !== undefined) {
      state.countBefore ??= count
      state.countAfter = count
    }
    const records: Record<string, unknown>[] = []
    const rejected: unknown[] = []
    for (const record of found) {
      const id = idOf(record)
      if (isRecord(record)) this.#meet(record, id)
      if (id === undefined || !isRecord(record)) rejected.push(record)
      else if (this.#isWanted(record, id)) records.push(record)
    }
    // Over `updated`, a lagging replica may still show a record at its old place, where it looks new to the frontier.
    const mayRepeat = state.phase === 'pages' || isStatus || this.key === 'updated'
    const isNew = mayRepeat && records.length + rejected.length > 0 ? await this.#addIds(records) : undefined
    const fresh = isNew === undefined ? records : records.filter((_, index) => isNew[index])
    state.counts.duplicatesDropped += records.length - fresh.length
    state.counts.records += fresh.length
    state.counts.rejected += rejected.length
    state.frontier = this.frontier.toState() ?? state.frontier
    const lines = this.#lines.splice(0)
    const left = found.length - fresh.length
    if (line !== undefined) lines.push({ ...line, taken: fresh.length, ...(left > 0 && { left }) })
    // Without the ids of the frontier, of which there may be 100,000 and which no one changes.
    const { frontier, ...others } = state
    this.#last = { ...structuredClone(others), frontier }
    return { records: fresh, rejected, state: this.#last, lines }
  }

  /** The last step without its records, and with the requests since then, which have failed. */
  failedStep(): ReadStep {
    const { requests } = this.state.counts
    const state = { ...this.#last, counts: { ...this.#last.counts, requests } }
    return { records: [], rejected: [], state, lines: [], fails: true }
  }

  /** Whether any of these records was not read. Call it last: it adds them to the set. */
  async lacksAny(records: readonly Identity[]): Promise<boolean> {
    if (records.length === 0) return false
    return (await (await this.options.idSet()).add(records)).includes(true)
  }

  /** The records of a window that the frontier does not know; with `only`, just those with that key. */
  #newIn({ records, keys, descending }: Window, only?: Instant): unknown[] {
    const fresh: unknown[] = []
    const { length } = records
    for (let step = 0; step < length; step++) {
      const index = descending ? step : length - 1 - step
      const key = keys[index] ?? NaN
      const instant = descending ? -key : key
      // The last window of the chain reaches below the bound.
      if (this.isBelow(instant) || (only !== undefined && instant !== only)) continue
      if (this.frontier.take(instant, identityOf(records[index]))) fresh.push(records[index])
      else this.state.counts.duplicatesDropped++
    }
    return fresh
  }

  /** Whether a record matches the filters. */
  #isWanted(record: Record<string, unknown>, id: string): boolean {
    const { seen } = this.state
    const { test_mode: mode } = record
    if (typeof mode === 'boolean') {
      seen.testMode = true
      const { resource, testMode } = this.options
      if (mode !== testMode) throw new TestModeMismatch({ resource: resource.name, id, testMode })
    }
    const broken = this.checks.broken(record)
    if (broken !== undefined) seen.ignored[broken] = (seen.ignored[broken] ?? 0) + 1
    return broken === undefined
  }

  /** The list shows this record and its status: neither is hidden. */
  #meet({ status }: Record<string, unknown>, id: string | undefined): void {
    const { watched, unmet = [] } = this.state
    if (watched === undefined) return
    const at = unmet.indexOf(typeof status === 'string' ? status : (watched[id ?? ''] ?? ''))
    if (at !== -1) unmet.splice(at, 1)
    if (id !== undefined) delete watched[id]
  }

  async #addIds(records: readonly Record<string, unknown>[]): Promise<boolean[]> {
    const ids = await this.options.idSet()
    return await ids.add(
      records.map((record) => ({ id: identityOf(record), created: toInstant(record['created']) })),
    )
  }
}

/** The place of the oldest record that is strictly newer than the oldest one of this window. */
function placeAfter(window: Window, oldest: Instant): number | undefined {
  const { low, keys, descending, count } = window
  if (!descending) return placeAbove(window, oldest)
  const newer = keys.findIndex((key) => key === -oldest)
  return count === undefined ? undefined : Math.max(0, count - low - Math.max(0, newer))
}
